//! What is damaged or missing is fetched and judged anew, by the stages of any run.

use std::sync::Arc;

use bus::{Bus, MemoryBus};
use catalog::Catalog;
use futures::{StreamExt as _, stream};
use model::{Clock, SourceId, SystemClock};
use pipeline::Pipeline;
use scheduler::{Harvest, HarvestError, HarvestOptions, Parts, Progress};
use store::{Store, StoreError};
use tokio::sync::watch;

use super::findings::Findings;
use crate::commands::sync::{BUS_CAPACITY, retries, stop_on_interrupt};
use crate::exit::{Failed, usage};
use crate::http::{self, HttpArgs};
use crate::notices::Notices;
use crate::show;

/// Mends what was found of a Source. Returns how many resources are whole again.
pub(super) async fn mend(
    source: &SourceId,
    url: &str,
    catalog: Catalog,
    store: Store,
    findings: &Findings,
    http: &HttpArgs,
) -> Result<u64, Failed> {
    let entry: url::Url = url.parse().map_err(usage)?;
    let client = http::client(http.config(&entry)?)?;
    let has_view = catalog.last_run().await?.is_some_and(|run| run.view);
    let bus: Arc<dyn Bus> = Arc::new(MemoryBus::new(BUS_CAPACITY));
    let notices = Notices::of(&client);
    let (stop, at_once) = stop_on_interrupt();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let pipeline = Pipeline::start(bus, &client, &store, Arc::clone(&clock)).await?;
    let (progress, watched) = watch::channel(Progress::default());
    let shown = show::watch(watched);
    let parts = Parts {
        source: source.clone(),
        entry,
        catalog,
        view: store.view().filter(|_| has_view),
        store,
        client,
        bus: Arc::clone(&pipeline.bus),
        clock,
        options: HarvestOptions { retries: retries(http.attempts()), ..HarvestOptions::default() },
        progress,
        stop,
    };
    let uris = stream::iter(findings.of(source)?).map(|found| match found {
        Ok(damaged) => Ok(damaged.held.uri),
        Err(error) => Err(HarvestError::from(StoreError::Other {
            at: "the system's temporary directory".to_owned(),
            source: Box::new(error),
        })),
    });
    let mended = tokio::select! {
        mended = Harvest::mend(parts, uris) => mended.map_err(Failed::from),
        () = at_once.cancelled() => Err(HarvestError::Stopped.into()),
        why = pipeline.trouble() => Err(Failed::from(anyhow::anyhow!("{why}. Nothing is lost: the next `thresher sync` goes on with it"))),
    };
    notices.finish().await;
    shown.finish().await;
    let (_, report) = mended?;
    pipeline.finish().await;
    Ok(report.map_or(0, |report| report.run.counters.healed))
}
