//! Fetches and verifies damaged or missing resources anew, by the stages of any run.

use std::sync::Arc;

use bus::MemoryBus;
use catalog::Catalog;
use futures::stream;
use harvest::{HarvestError, Parts, Progress};
use model::{SourceId, SystemClock};
use planning::HarvestOptions;
use store::{Store, StoreError};
use tokio::sync::watch;

use super::findings::Findings;
use crate::commands::sync::{BUS_CAPACITY, stop_on_interrupt};
use crate::exit::{Failed, usage};
use crate::http::{self, HttpArgs};
use crate::{crawl_delays, show};

/// Repairs the findings about a Source. Returns how many resources are intact again.
pub(super) async fn repair(
    source: &SourceId,
    url: &str,
    catalog: Catalog,
    store: Store,
    findings: &Findings,
    http: &HttpArgs,
) -> Result<u64, Failed> {
    let entry: url::Url = url.parse().map_err(usage)?;
    let client = http::client(http.config(&entry)?)?;
    let watched_client = client.clone();
    let has_view = catalog.last_run().await?.is_some_and(|run| run.view);
    let (stop, at_once) = stop_on_interrupt();
    let (progress, watched) = watch::channel(Progress::default());
    let shown = show::watch(watched);
    let parts = Parts {
        source: source.clone(),
        entry,
        catalog,
        view: store.view().filter(|_| has_view),
        store,
        client,
        bus: Arc::new(MemoryBus::new(BUS_CAPACITY)),
        clock: Arc::new(SystemClock),
        options: HarvestOptions { retries: http.retry_policy(), ..HarvestOptions::default() },
        progress,
        observer: None,
        push_lag: harvest::PushLag::default(),
        stop,
    };
    // No Source can send an earlier version again.
    let uris = findings.of(source)?.filter_map(|found| match found {
        Ok(damaged) => damaged.held.version.is_none().then_some(Ok(damaged.held.uri)),
        Err(error) => Some(Err(HarvestError::from(StoreError::Other {
            at: "the system's temporary directory".to_owned(),
            source: Box::new(error),
        }))),
    });
    let repaired =
        crawl_delays::print_during(&watched_client, pipeline::repair(parts, stream::iter(uris), &at_once))
            .await;
    shown.finish().await;
    Ok(repaired?.map_or(0, |report| report.run.counters.healed))
}
