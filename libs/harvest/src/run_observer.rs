//! Observer of the changes that a run made.

use async_trait::async_trait;
use model::RunRecord;

/// Observes the changes of a run, after all of them are settled and before the run ends. So no change that a receiver
/// must be told of is forgotten. A run that is resumed at its very end is reported again.
#[async_trait]
pub trait RunObserver: Send + Sync {
    /// Receives a run, with its final counters.
    ///
    /// # Errors
    /// When the report cannot be recorded now. The run does not end then, and is resumed as after any other fault.
    async fn observe(&self, run: &RunRecord) -> Result<(), ObserverError>;
}

/// Why a run could not be reported.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct ObserverError {
    /// The cause.
    pub source: Box<dyn std::error::Error + Send + Sync>,
    /// Whether a later attempt may succeed.
    pub is_temporary: bool,
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bus::MemoryBus;
    use catalog::{Catalog, CatalogConfig};
    use model::{Phase, RunId, SourceId, SystemClock};
    use simulated_source::{SimulatedSource, SourceSpec};
    use store::{Store, StoreOptions, StoreTarget};
    use tempfile::TempDir;
    use tokio::sync::watch;
    use tokio_util::sync::CancellationToken;
    use web::{Client, WebConfig};

    use planning::HarvestOptions;

    use super::*;
    use crate::{Harvest, HarvestError, Parts, Progress, PushLag};

    /// An observer that fails at first.
    #[derive(Default)]
    struct Forgetful(Mutex<Vec<RunId>>);

    #[async_trait]
    impl RunObserver for Forgetful {
        async fn observe(&self, run: &RunRecord) -> Result<(), ObserverError> {
            assert_ne!(run.phase, Phase::Finished);
            let mut heard = self.0.lock().unwrap();
            heard.push(run.id);
            match heard.len() {
                1 => Err(ObserverError { source: "the outbox is busy".into(), is_temporary: true }),
                _ => Ok(()),
            }
        }
    }

    #[tokio::test]
    async fn a_run_that_could_not_be_noted_is_not_over_and_is_heard_of_again() {
        let folder = TempDir::new().unwrap();
        let target = StoreTarget::Directory(folder.path().to_owned());
        let store =
            Store::open(&target, StoreOptions { fsync: false, ..StoreOptions::default() }).await.unwrap();
        let offered = SimulatedSource::start(SourceSpec::default().resources(0)).await.unwrap();
        let entry: url::Url = offered.well_known().parse().unwrap();
        let observer = Arc::new(Forgetful::default());
        let open =
            async || Catalog::open(store.object_store(), "catalog", CatalogConfig::default()).await.unwrap();
        let harvest = async || {
            let parts = Parts {
                source: SourceId::of_entry(&entry),
                entry: entry.clone(),
                catalog: open().await,
                store: store.clone(),
                view: None,
                client: Client::new(WebConfig::default()).unwrap(),
                bus: Arc::new(MemoryBus::new(16)),
                clock: Arc::new(SystemClock),
                options: HarvestOptions::default(),
                progress: watch::Sender::new(Progress::default()),
                observer: Some(Arc::clone(&observer) as Arc<dyn RunObserver>),
                push_lag: PushLag::default(),
                stop: CancellationToken::new(),
            };
            Harvest::open(parts).await.unwrap().run().await
        };
        let error = harvest().await.unwrap_err();
        assert!(matches!(error, HarvestError::Observer(_)), "{error}");
        let report = harvest().await.unwrap();
        assert!(report.resumed);
        assert_eq!(*observer.0.lock().unwrap(), [report.run.id, report.run.id]);
        assert_eq!(open().await.last_run().await.unwrap().unwrap().phase, Phase::Finished);
    }
}
