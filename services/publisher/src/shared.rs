//! What all requests share.

use std::sync::Arc;

use axum::http::HeaderValue;
use catalog::{CatalogConfig, CatalogError, CatalogReader};
use publish::Publication;
use serving::VerifiedCache;
use store::Key;
use tokio::sync::RwLock;

/// What all requests share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Parts>);

struct Parts {
    publication: Publication,
    catalog: RwLock<Arc<CatalogReader>>,
    verified: VerifiedCache,
    link: Option<HeaderValue>,
}

impl Shared {
    pub(crate) async fn open(publication: Publication) -> Result<Self, CatalogError> {
        let catalog = RwLock::new(reader(&publication).await?);
        let capabilities = publication.base.url(publish::paths::CAPABILITIES);
        let link = format!("<{capabilities}>; rel=\"resourcesync\"").parse().ok();
        Ok(Self(Arc::new(Parts { publication, catalog, verified: VerifiedCache::default(), link })))
    }

    pub(crate) fn publication(&self) -> &Publication {
        &self.0.publication
    }

    pub(crate) fn verified(&self) -> &VerifiedCache {
        &self.0.verified
    }

    /// The `Link` header that leads to the Capability List.
    pub(crate) fn link(&self) -> Option<HeaderValue> {
        self.0.link.clone()
    }

    /// The catalog. It shows commits of its writer with a delay of at most one second.
    pub(crate) async fn catalog(&self) -> Arc<CatalogReader> {
        Arc::clone(&*self.0.catalog.read().await)
    }

    /// Opens the catalog again: a reader whose background task failed fails for ever.
    pub(crate) async fn open_again(&self) -> Result<(), CatalogError> {
        let fresh = reader(self.publication()).await?;
        *self.0.catalog.write().await = fresh;
        Ok(())
    }
}

async fn reader(publication: &Publication) -> Result<Arc<CatalogReader>, CatalogError> {
    let path = Key::Catalog(publication.source.source.clone()).to_string();
    let objects = publication.store.object_store();
    CatalogReader::open(objects, &path, CatalogConfig::default()).await.map(Arc::new)
}
