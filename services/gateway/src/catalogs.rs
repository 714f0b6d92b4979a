//! Open readers of the catalogs that requests used lately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catalog::{CacheBudget, CatalogConfig, CatalogError, CatalogReader};
use model::SourceId;
use store::{Key, Store};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A reader without requests for this long is closed. An open reader polls the store every second for new commits, and
/// each poll is a request.
const IDLE: Duration = Duration::from_secs(60);
/// How often the gateway looks for idle readers.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// A bounded number of catalog readers. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Catalogs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    config: CatalogConfig,
    most: usize,
    slots: Mutex<HashMap<SourceId, Slot>>,
}

/// A slot per catalog. A catalog that opens slowly blocks no other one, and it is opened only once.
#[derive(Debug, Clone)]
struct Slot {
    reader: Arc<OnceCell<Arc<CatalogReader>>>,
    used: Instant,
}

impl Catalogs {
    /// Starts without open readers. All of them share `cache_bytes` of cache.
    pub(crate) fn new(store: Store, most: usize, cache_bytes: usize) -> Self {
        // The larger share is for indexes and filters, which every lookup needs.
        let cache = CacheBudget::new(cache_bytes * 2 / 5, cache_bytes * 3 / 5);
        let config = CatalogConfig { cache, ..CatalogConfig::default() };
        Self(Arc::new(Inner { store, config, most: most.max(1), slots: Mutex::default() }))
    }

    /// The catalog of a Source. It shows commits of its writer with a delay of at most one second.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`] when nothing of the Source is stored; else the error of the store.
    pub(crate) async fn get(&self, source: &SourceId) -> Result<Arc<CatalogReader>, CatalogError> {
        let opened = self.opened(source).await?;
        // A background task of the reader may have failed since. Such a reader fails for ever.
        match opened.last_seq().await {
            Ok(_) => Ok(opened),
            Err(error) => {
                tracing::info!(source.id = %source, %error, "a catalog is opened anew");
                self.slots().remove(source);
                self.opened(source).await
            }
        }
    }

    async fn opened(&self, source: &SourceId) -> Result<Arc<CatalogReader>, CatalogError> {
        let slot = self.slot(source);
        let path = Key::Catalog(source.clone()).to_string();
        let open = || async {
            let reader =
                CatalogReader::open(self.0.store.object_store(), &path, self.0.config.clone()).await?;
            Ok(Arc::new(reader))
        };
        match slot.get_or_try_init(open).await {
            Ok(reader) => Ok(Arc::clone(reader)),
            Err(error) => {
                // A Source without a catalog takes no slot.
                let mut slots = self.slots();
                if slots.get(source).is_some_and(|slot| slot.reader.get().is_none()) {
                    slots.remove(source);
                }
                Err(error)
            }
        }
    }

    fn slot(&self, source: &SourceId) -> Arc<OnceCell<Arc<CatalogReader>>> {
        let mut slots = self.slots();
        if !slots.contains_key(source) && slots.len() >= self.0.most {
            let oldest = slots.iter().min_by_key(|(_, slot)| slot.used).map(|(source, _)| source.clone());
            // Requests that still use this reader keep it until they end.
            oldest.map(|oldest| slots.remove(&oldest));
        }
        let now = Instant::now();
        let slot = slots.entry(source.clone()).or_insert_with(|| Slot { reader: Arc::default(), used: now });
        slot.used = now;
        Arc::clone(&slot.reader)
    }

    /// Closes idle readers, until `stop`.
    pub(crate) async fn sweep(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP_EVERY) => {}
                () = stop.cancelled() => return,
            }
            self.slots().retain(|_, slot| slot.used.elapsed() < IDLE);
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<SourceId, Slot>> {
        // Each change is a single insertion or removal, so the map is consistent even after a panic.
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use catalog::Catalog;

    use super::*;

    async fn with_catalogs(names: &[&str]) -> Store {
        let store = Store::in_memory();
        for name in names {
            let path = Key::Catalog(name.parse().unwrap()).to_string();
            let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
            catalog.close().await.unwrap();
        }
        store
    }

    fn open(catalogs: &Catalogs) -> Vec<String> {
        let mut names: Vec<String> = catalogs.slots().keys().map(ToString::to_string).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_reader_is_shared_and_the_one_asked_for_longest_ago_makes_room() {
        let catalogs = Catalogs::new(with_catalogs(&["a", "b", "c"]).await, 2, 1024 * 1024);
        let get = async |name: &str| catalogs.get(&name.parse().unwrap()).await.unwrap();
        let first = get("a").await;
        get("b").await;
        assert!(Arc::ptr_eq(&first, &get("a").await));
        get("c").await;
        assert_eq!(open(&catalogs), ["a", "c"]);
        let again = get("b").await;
        assert_eq!(again.last_seq().await.unwrap(), model::Seq::default());
    }

    #[tokio::test]
    async fn a_name_that_is_none_takes_no_room() {
        let catalogs = Catalogs::new(with_catalogs(&[]).await, 2, 1024 * 1024);
        let found = catalogs.get(&"none".parse().unwrap()).await;
        assert!(matches!(found, Err(CatalogError::NotFound { .. })));
        assert!(open(&catalogs).is_empty());
    }

    #[tokio::test]
    async fn one_that_was_closed_is_opened_anew() {
        let catalogs = Catalogs::new(with_catalogs(&["a"]).await, 2, 1024 * 1024);
        let first = catalogs.get(&"a".parse().unwrap()).await.unwrap();
        first.close().await.unwrap();
        let second = catalogs.get(&"a".parse().unwrap()).await.unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        second.last_seq().await.unwrap();
    }
}
