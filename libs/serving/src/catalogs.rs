//! Open readers of the catalogs that were used lately.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catalog::{CacheBudget, CatalogConfig, CatalogError, CatalogReader, LogEnd};
use model::SourceId;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use store::{Key, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A reader that is not used for this long is closed. An open reader polls the store every second for new commits, which
/// takes some ten requests.
const IDLE: Duration = Duration::from_secs(60);
/// How often idle readers are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// A bounded number of catalog readers. Clones share them. Idle ones are closed while [`Catalogs::sweep`] runs.
#[derive(Debug, Clone)]
pub struct Catalogs {
    store: Store,
    config: CatalogConfig,
    open: Cache<SourceId, Arc<Open>>,
}

/// An open reader.
#[derive(Debug)]
struct Open {
    reader: Arc<CatalogReader>,
    /// When it was asked for last.
    used: Mutex<Instant>,
}

impl Open {
    fn new(reader: CatalogReader) -> Self {
        Self { reader: Arc::new(reader), used: Mutex::new(Instant::now()) }
    }

    fn note_use(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self) -> bool {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= IDLE
    }
}

impl Catalogs {
    /// Starts without open readers. All of them share `cache_bytes` of cache.
    pub fn new(store: Store, most: usize, cache_bytes: usize) -> Self {
        // The larger share is for indexes and filters, which every lookup needs.
        let cache = CacheBudget::new(cache_bytes * 2 / 5, cache_bytes * 3 / 5);
        let config = CatalogConfig { cache, ..CatalogConfig::default() };
        let open =
            Cache::builder().max_capacity(most.max(1) as u64).eviction_policy(EvictionPolicy::lru()).build();
        Self { store, config, open }
    }

    /// Lets readers look for new commits so often, in place of each second. Where the store charges for requests, that
    /// costs.
    pub fn looking_every(mut self, interval: Duration) -> Self {
        self.config.poll_interval = interval;
        self
    }

    /// The store of the catalogs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The catalog of a Source. It shows commits of its writer with a delay of at most one second.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`] when nothing of the Source is stored; else the error of the store.
    pub async fn get(&self, source: &SourceId) -> Result<Arc<CatalogReader>, Arc<CatalogError>> {
        let reader = self.reader(source).await?;
        // A background task of the reader may have failed since. Such a reader fails for ever.
        match reader.last_seq().await {
            Ok(_) => Ok(reader),
            Err(error) => {
                tracing::info!(source.id = %source, %error, "a catalog is opened again");
                self.open.invalidate(source).await;
                self.reader(source).await
            }
        }
    }

    /// The end of the log of a Source's catalog, by one request: the same as `before` if nothing was committed since.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn log_end(
        &self,
        source: &SourceId,
        before: Option<&LogEnd>,
    ) -> Result<Option<LogEnd>, CatalogError> {
        LogEnd::of(&self.store.object_store(), &Key::Catalog(source.clone()).to_string(), before).await
    }

    /// Closes the reader of a Source when its last user is done. The next one is new, and shows all commits until then.
    pub async fn close(&self, source: &SourceId) {
        self.open.invalidate(source).await;
        // The cache would else keep it until later.
        self.open.run_pending_tasks().await;
    }

    /// The open reader of a Source. A catalog that opens slowly blocks no other one, and it is opened only once.
    async fn reader(&self, source: &SourceId) -> Result<Arc<CatalogReader>, Arc<CatalogError>> {
        let open = async {
            let path = Key::Catalog(source.clone()).to_string();
            let reader = CatalogReader::open(self.store.object_store(), &path, self.config.clone()).await?;
            Ok(Arc::new(Open::new(reader)))
        };
        // Boxed: nested futures would overflow the stack of a worker thread.
        let entry = self.open.entry_by_ref(source).or_try_insert_with(Box::pin(open)).await?;
        if entry.is_fresh() {
            // The cache would else close a reader beyond the limit only later.
            self.open.run_pending_tasks().await;
        }
        let open = entry.into_value();
        open.note_use();
        Ok(Arc::clone(&open.reader))
    }

    /// Closes idle readers, until `stop`.
    pub async fn sweep(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP_EVERY) => self.close_idle().await,
                () = stop.cancelled() => return,
            }
        }
    }

    async fn close_idle(&self) {
        let all = self.open.iter();
        let idle: Vec<_> = all.filter(|(_, open)| open.is_idle()).map(|(source, _)| source).collect();
        for source in idle {
            self.open.invalidate(&*source).await;
        }
        self.open.run_pending_tasks().await;
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
        let mut names: Vec<String> = catalogs.open.iter().map(|(source, _)| source.to_string()).collect();
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
        assert!(found.is_err_and(|error| matches!(*error, CatalogError::NotFound { .. })));
        assert!(open(&catalogs).is_empty());
    }

    #[tokio::test]
    async fn an_idle_one_is_closed_and_one_that_is_used_stays_open() {
        let catalogs = Catalogs::new(with_catalogs(&["a", "b"]).await, 2, 1024 * 1024);
        let get = async |name: &str| catalogs.get(&name.parse().unwrap()).await.unwrap();
        let (first, _) = (get("a").await, get("b").await);
        tokio::time::pause();
        tokio::time::advance(IDLE / 2).await;
        assert!(Arc::ptr_eq(&first, &get("a").await));
        tokio::time::advance(IDLE / 2).await;
        catalogs.close_idle().await;
        assert_eq!(open(&catalogs), ["a"]);
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
