//! A harvest that is published: its catalog and its store.

use std::sync::Arc;

use catalog::{CatalogError, CatalogReader, LogEnd};
use model::SourceId;
use publish::{CatalogRecords, PublishError, SeenSets};
use serving::{Catalogs, VerifiedCache};
use store::Store;
use tokio::sync::{Mutex, Semaphore};

/// Requests of OAI-PMH for one repository that are answered at the same time.
pub(crate) const OAI_AT_A_TIME: usize = 4;

/// A harvest.
pub(crate) struct Harvest {
    source: SourceId,
    catalogs: Catalogs,
    pub(crate) verified: VerifiedCache,
    /// Turns of requests of OAI-PMH.
    pub(crate) oai_turns: Semaphore,
    /// The sets that records of OAI-PMH were seen to name.
    pub(crate) oai_sets: Mutex<SeenSets>,
}

impl Harvest {
    pub(crate) fn new(source: SourceId, catalogs: Catalogs, verified: VerifiedCache) -> Self {
        let oai_turns = Semaphore::new(OAI_AT_A_TIME);
        Self { source, catalogs, verified, oai_turns, oai_sets: Mutex::default() }
    }

    /// The catalogs, of which one is its own.
    pub(crate) fn catalogs(&self) -> &Catalogs {
        &self.catalogs
    }

    pub(crate) fn store(&self) -> &Store {
        self.catalogs.store()
    }

    /// The catalog. It shows commits of its writer with a delay of at most one second.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`] when nothing of the Source is stored; else the error of the store.
    pub(crate) async fn catalog(&self) -> Result<Arc<CatalogReader>, Arc<CatalogError>> {
        // Boxed: nested futures would overflow the stack of a worker thread.
        Box::pin(self.catalogs.get(&self.source)).await
    }

    /// The end of the catalog's log: the same as `before` if nothing was committed since. It takes one request.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn log_end(&self, before: Option<&LogEnd>) -> Result<Option<LogEnd>, CatalogError> {
        self.catalogs.log_end(&self.source, before).await
    }

    /// Closes the catalog. The next use opens it again, and shows all commits until then.
    pub(crate) async fn close_catalog(&self) {
        self.catalogs.close(&self.source).await;
    }

    /// What a catalog has that was opened now or before, to be published.
    pub(crate) fn records(&self, catalog: &CatalogReader) -> CatalogRecords {
        CatalogRecords::new(catalog, self.store()).that_may_lag()
    }
}

/// Whether nothing of a Source is stored yet.
pub(crate) fn is_missing(error: &PublishError) -> bool {
    matches!(error, PublishError::Open(error) if matches!(**error, CatalogError::NotFound { .. }))
}
