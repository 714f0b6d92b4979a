//! Whether a harvest has news. While it has none, its catalog is closed: an open one asks its store some ten times a
//! second for commits, and the end of its log takes one request.

use catalog::{CatalogError, LogEnd};

use crate::harvest::Harvest;

/// What is known of the log of a harvest's catalog.
#[derive(Debug, Default)]
pub(crate) struct News {
    end: Option<LogEnd>,
    /// Whether all of it is published.
    is_published: bool,
    /// Whether the look that is due reads all of it.
    is_complete: bool,
}

impl News {
    /// Whether to look into the catalog: something was committed, or the last look may not have read all of it.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn are_there(&mut self, harvest: &Harvest) -> Result<bool, CatalogError> {
        let end = harvest.log_end(self.end.as_ref()).await?;
        let has_moved = end != self.end;
        if !has_moved && self.is_published {
            return Ok(false);
        }
        // An open catalog may be behind its log by a second; one that is opened now is not. While commits come one
        // after another, it stays open.
        self.is_complete = !has_moved;
        if self.is_complete {
            harvest.close_catalog().await;
        }
        self.end = end;
        self.is_published = false;
        Ok(true)
    }

    /// Notes that the look succeeded.
    pub(crate) async fn looked(&mut self, harvest: &Harvest) {
        self.is_published = self.is_complete;
        if self.is_published {
            harvest.close_catalog().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::{Batch, Catalog, CatalogConfig};
    use model::{SetId, SetRecord, SourceId};
    use serving::{Catalogs, VerifiedCache};
    use store::{Key, Operation, Store};

    use super::*;

    fn lists(store: &Store) -> u64 {
        let counted = store.operations();
        counted.counted().filter(|(operation, ..)| *operation == Operation::List).map(|(.., n)| n).sum()
    }

    async fn commit(catalog: &Catalog, set: &str) {
        let mut batch = Batch::new();
        batch.put_set(&SetId::new(set), &SetRecord::default());
        catalog.commit(batch).await.unwrap();
    }

    #[tokio::test]
    async fn a_look_without_news_takes_one_request_and_leaves_the_catalog_closed() {
        let (store, source) = (Store::in_memory(), "one".parse::<SourceId>().unwrap());
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
        let harvest =
            Harvest::new(source, Catalogs::new(store.clone(), 1, 1 << 20), VerifiedCache::default());
        let mut news = News::default();
        for set in ["http://h/1", "http://h/2"] {
            commit(&catalog, set).await;
            assert!(news.are_there(&harvest).await.unwrap(), "something was committed");
            let open = harvest.catalog().await.unwrap();
            news.looked(&harvest).await;
            assert!(Arc::ptr_eq(&open, &harvest.catalog().await.unwrap()), "it stays open");

            assert!(news.are_there(&harvest).await.unwrap(), "the open catalog may be behind");
            let reopened = harvest.catalog().await.unwrap();
            assert!(!Arc::ptr_eq(&open, &reopened));
            assert!(reopened.sets().await.unwrap().iter().any(|(id, _)| id.as_str() == set));
            let left = Arc::downgrade(&reopened);
            drop((open, reopened));
            news.looked(&harvest).await;
            assert!(left.upgrade().is_none(), "it is closed");

            let before = lists(&store);
            assert!(!news.are_there(&harvest).await.unwrap());
            assert_eq!(lists(&store), before + 1);
        }
        catalog.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_look_that_fails_is_made_again() {
        let (store, source) = (Store::in_memory(), "one".parse::<SourceId>().unwrap());
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
        let harvest = Harvest::new(source, Catalogs::new(store, 1, 1 << 20), VerifiedCache::default());
        let mut news = News::default();
        for _ in 0..3 {
            assert!(news.are_there(&harvest).await.unwrap());
        }
        catalog.close().await.unwrap();
    }
}
