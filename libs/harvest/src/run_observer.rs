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

    use catalog::{Catalog, CatalogConfig, CatalogReader};
    use model::{Phase, RunId};
    use simulated_source::{SimulatedSource, SourceSpec};
    use store::{Store, StoreOptions, StoreTarget};
    use tempfile::TempDir;

    use super::*;
    use crate::{Harvest, HarvestError, Parts, Report};

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

    /// An observer that reads what is written of the run.
    struct Reading {
        store: Store,
        found: Mutex<Vec<Phase>>,
    }

    #[async_trait]
    impl RunObserver for Reading {
        async fn observe(&self, run: &RunRecord) -> Result<(), ObserverError> {
            assert_eq!(run.phase, Phase::Dispatching);
            let store = self.store.object_store();
            let catalog = CatalogReader::open(store, "catalog", CatalogConfig::default()).await.unwrap();
            let written = catalog.last_run().await.unwrap();
            catalog.close().await.unwrap();
            self.found.lock().unwrap().extend(written.map(|run| run.phase));
            Ok(())
        }
    }

    async fn store_in(folder: &TempDir) -> Store {
        let target = StoreTarget::Directory(folder.path().to_owned());
        Store::open(&target, StoreOptions { fsync: false, ..StoreOptions::default() }).await.unwrap()
    }

    async fn open(store: &Store) -> Catalog {
        Catalog::open(store.object_store(), "catalog", CatalogConfig::default()).await.unwrap()
    }

    async fn harvest(
        store: &Store,
        offered: &SimulatedSource,
        observer: Arc<dyn RunObserver>,
    ) -> Result<Report, HarvestError> {
        let entry: url::Url = offered.well_known().parse().unwrap();
        let parts = Parts::of_test(entry, open(store).await, store);
        let parts = Parts { observer: Some(observer), ..parts };
        Harvest::open(parts).await.unwrap().run().await
    }

    #[tokio::test]
    async fn a_run_without_work_is_not_written_between_its_plan_and_its_end() {
        let folder = TempDir::new().unwrap();
        let store = store_in(&folder).await;
        let offered = SimulatedSource::start(SourceSpec::default().resources(0)).await.unwrap();
        let observer = Arc::new(Reading { store: store.clone(), found: Mutex::default() });
        harvest(&store, &offered, Arc::clone(&observer) as _).await.unwrap();
        assert_eq!(*observer.found.lock().unwrap(), [Phase::Planning]);
        assert_eq!(open(&store).await.last_run().await.unwrap().unwrap().phase, Phase::Finished);
    }

    #[tokio::test]
    async fn a_run_that_could_not_be_noted_is_not_over_and_is_heard_of_again() {
        let folder = TempDir::new().unwrap();
        let store = store_in(&folder).await;
        let offered = SimulatedSource::start(SourceSpec::default().resources(0)).await.unwrap();
        let observer = Arc::new(Forgetful::default());
        let harvest = || harvest(&store, &offered, Arc::clone(&observer) as _);
        let error = harvest().await.unwrap_err();
        assert!(matches!(error, HarvestError::Observer(_)), "{error}");
        let report = harvest().await.unwrap();
        assert!(report.resumed);
        assert_eq!(*observer.0.lock().unwrap(), [report.run.id, report.run.id]);
        assert_eq!(open(&store).await.last_run().await.unwrap().unwrap().phase, Phase::Finished);
    }
}
