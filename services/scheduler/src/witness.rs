//! Who hears what a run has changed.

use async_trait::async_trait;
use model::RunRecord;

use crate::error::HarvestError;

/// Hears what a run has changed, when all of it is settled and before the run is over: so that no change is forgotten that somebody is to be
/// told of. A run that is taken up again at its very end is heard of again.
#[async_trait]
pub trait Witness: Send + Sync {
    /// Hears of a run, whose counters are those of its end.
    ///
    /// # Errors
    /// When that cannot be noted now: the run does not end then, and goes on as after any other fault.
    async fn hear(&self, run: &RunRecord) -> Result<(), HarvestError>;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bus::MemoryBus;
    use catalog::{Catalog, CatalogConfig};
    use control::ControlError;
    use model::{Phase, RunId, SourceId, SystemClock};
    use store::{Store, StoreOptions, StoreTarget};
    use tempfile::TempDir;
    use testkit::source::{SimulatedSource, SourceSpec};
    use tokio::sync::watch;
    use tokio_util::sync::CancellationToken;
    use web::{Client, WebConfig};

    use super::*;
    use crate::{Harvest, HarvestOptions, Parts, Progress};

    /// One who can note nothing at first.
    #[derive(Default)]
    struct Forgetful(Mutex<Vec<RunId>>);

    #[async_trait]
    impl Witness for Forgetful {
        async fn hear(&self, run: &RunRecord) -> Result<(), HarvestError> {
            assert_ne!(run.phase, Phase::Finished);
            let mut heard = self.0.lock().unwrap();
            heard.push(run.id);
            match heard.len() {
                1 => Err(ControlError::Conflict { what: "the outbox".to_owned() }.into()),
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
        let witness = Arc::new(Forgetful::default());
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
                witness: Some(Arc::clone(&witness) as Arc<dyn Witness>),
                stop: CancellationToken::new(),
            };
            Harvest::open(parts).await.unwrap().run().await
        };
        let error = harvest().await.unwrap_err();
        assert!(matches!(error, HarvestError::Control(_)), "{error}");
        let report = harvest().await.unwrap();
        assert!(report.resumed);
        assert_eq!(*witness.0.lock().unwrap(), [report.run.id, report.run.id]);
        assert_eq!(open().await.last_run().await.unwrap().unwrap().phase, Phase::Finished);
    }
}
