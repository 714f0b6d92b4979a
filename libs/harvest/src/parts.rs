//! The dependencies of a harvest.

use std::sync::Arc;

use bus::Bus;
use catalog::Catalog;
use model::{Clock, SourceId};
use planning::HarvestOptions;
use store::{Store, View};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;
use web::Client;

use crate::run::progress::Progress;
use crate::run::push_lag::PushLag;
use crate::run_observer::RunObserver;

/// Dependencies of a harvest. One per Source, because a catalog has one writer.
pub struct Parts {
    /// The Source's ID.
    pub source: SourceId,
    /// The entry URL, as the operator gave it.
    pub entry: Url,
    /// The Source's catalog.
    pub catalog: Catalog,
    /// The store of all bytes.
    pub store: Store,
    /// The view of resources as files, if there is one.
    pub view: Option<View>,
    /// HTTP client for documents.
    pub client: Client,
    /// The bus that carries jobs.
    pub bus: Arc<dyn Bus>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The operator's options.
    pub options: HarvestOptions,
    /// Channel for progress reports.
    pub progress: watch::Sender<Progress>,
    /// Observer of the changes that the run made, if any.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Push lag of the changes that notifications reported.
    pub push_lag: PushLag,
    /// Cancelled to stop the harvest.
    pub stop: CancellationToken,
}

#[cfg(test)]
impl Parts {
    /// Those of a test: a bus in memory, the clock of the system, the usual options.
    pub(crate) fn of_test(entry: Url, catalog: Catalog, store: &Store) -> Self {
        Self {
            source: SourceId::of_entry(&entry),
            entry,
            catalog,
            store: store.clone(),
            view: None,
            client: Client::new(web::WebConfig::default()).expect("a client"),
            bus: Arc::new(bus::MemoryBus::new(16)),
            clock: Arc::new(model::SystemClock),
            options: HarvestOptions::default(),
            progress: watch::Sender::default(),
            observer: None,
            push_lag: PushLag::default(),
            stop: CancellationToken::new(),
        }
    }
}
