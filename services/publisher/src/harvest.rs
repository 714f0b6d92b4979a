//! A harvest that is published: its catalog and its store.

use std::sync::Arc;

use catalog::{CatalogConfig, CatalogError, CatalogReader};
use model::SourceId;
use publish::{CatalogRecords, SeenSets};
use serving::VerifiedCache;
use store::{Key, Store};
use tokio::sync::{Mutex, RwLock, Semaphore};

/// Requests of OAI-PMH that are answered at the same time: each may have a page in memory.
pub(crate) const OAI_AT_A_TIME: usize = 4;

/// A harvest.
pub(crate) struct Harvest {
    path: String,
    pub(crate) store: Store,
    pub(crate) verified: VerifiedCache,
    /// Turns of requests of OAI-PMH.
    pub(crate) oai_turns: Semaphore,
    /// The sets that records of OAI-PMH were seen to name.
    pub(crate) oai_sets: Mutex<SeenSets>,
    catalog: RwLock<Arc<CatalogReader>>,
}

impl Harvest {
    pub(crate) async fn open(store: Store, source: &SourceId) -> Result<Self, CatalogError> {
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = RwLock::new(reader(&store, &path).await?);
        Ok(Self {
            path,
            store,
            verified: VerifiedCache::default(),
            oai_turns: Semaphore::new(OAI_AT_A_TIME),
            oai_sets: Mutex::default(),
            catalog,
        })
    }

    /// The catalog. It shows commits of its writer with a delay of at most one second.
    pub(crate) async fn catalog(&self) -> Arc<CatalogReader> {
        Arc::clone(&*self.catalog.read().await)
    }

    /// What it stores, to be published.
    pub(crate) async fn records(&self) -> CatalogRecords {
        CatalogRecords::new(&**self.catalog().await, &self.store)
    }

    /// Opens the catalog again: a reader whose background task failed fails for ever.
    pub(crate) async fn open_again(&self) -> Result<(), CatalogError> {
        let fresh = reader(&self.store, &self.path).await?;
        *self.catalog.write().await = fresh;
        Ok(())
    }
}

async fn reader(store: &Store, path: &str) -> Result<Arc<CatalogReader>, CatalogError> {
    CatalogReader::open(store.object_store(), path, CatalogConfig::default()).await.map(Arc::new)
}
