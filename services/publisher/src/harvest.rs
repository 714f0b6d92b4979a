//! A harvest that is published: its catalog and its store.

use std::sync::Arc;

use catalog::{CatalogConfig, CatalogError, CatalogReader};
use model::SourceId;
use publish::CatalogRecords;
use serving::VerifiedCache;
use store::{Key, Store};
use tokio::sync::RwLock;

/// A harvest.
pub(crate) struct Harvest {
    path: String,
    pub(crate) store: Store,
    pub(crate) verified: VerifiedCache,
    catalog: RwLock<Arc<CatalogReader>>,
}

impl Harvest {
    pub(crate) async fn open(store: Store, source: &SourceId) -> Result<Self, CatalogError> {
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = RwLock::new(reader(&store, &path).await?);
        Ok(Self { path, store, verified: VerifiedCache::default(), catalog })
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
