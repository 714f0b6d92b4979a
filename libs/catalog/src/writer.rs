//! The one writer of a catalog.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::ObjectStore;
use slatedb::config::{CloseOptions, FlushOptions, FlushType};
use slatedb::{CloseReason, Db};
use tokio::sync::Mutex;

use crate::batch::TooLong;
use crate::clock::DbClock;
use crate::compact_as_merged::CompactAsMerged;
use crate::config::{BLOCK_SIZE, kept_as_written};
use crate::in_flight_batches::{CommitGuard, InFlightBatches};
use crate::keyspace::LONGEST_KEY;
use crate::lookups::Source;
use crate::meta::{NEXT_CHANGE, SCHEMA, SCHEMA_KEY};
use crate::owner_store::OwnerStore;
use crate::reader::{CatalogReader, count_manifests, exists, within};
use crate::upkeep::{Upkeep, Upkept};
use crate::{Batch, CatalogConfig, CatalogError, Lookups};

/// A catalog opened for writing. A Source has one writer: opening takes the catalog over, and the earlier
/// writer gets [`CatalogError::Fenced`] from then on.
///
/// A dropped catalog writes nothing more, as after a crash; [`close`](Self::close) it to shut it down
/// cleanly.
pub struct Catalog {
    lookups: Lookups,
    db: Db,
    config: CatalogConfig,
    /// The next number of the change log. The caller that numbers entries holds the lock until they are
    /// submitted, so that numbers rise in the order of commits.
    next_change: Mutex<u64>,
    /// Held while the log is flushed: tasks that wait for it share the next flush.
    flushing: Mutex<()>,
    in_doubt: AtomicBool,
    upkeep: Upkeep,
    store: Arc<OwnerStore>,
}

impl Catalog {
    /// Opens the catalog at `path` of a store (`catalogs/<source>`) for writing, and creates it if there is
    /// none.
    ///
    /// # Errors
    /// [`CatalogError::NewerSchema`] when a later version wrote it (whose writer is then not disturbed),
    /// [`CatalogError::TimedOut`] and [`CatalogError::Store`] when the store fails.
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        path: &str,
        config: CatalogConfig,
    ) -> Result<Self, CatalogError> {
        within(path, "opened", &config.clone(), Self::open_unbounded(store, path, config)).await
    }

    /// Whether there is a catalog at `path` of a store.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn exists(store: &Arc<dyn ObjectStore>, path: &str) -> Result<bool, CatalogError> {
        exists(store, path).await
    }

    /// Applies a batch: all of it or nothing. It returns once the batch is durable, so that no acknowledged
    /// change is lost in a crash. Concurrent commits share one write to the store.
    ///
    /// It may be dropped at any time, as in a `select!` with a signal of a store failure. It takes at most
    /// [`CatalogConfig::commit_timeout`] by itself, but such a signal is faster and gives the reason. Whether
    /// a cancelled batch is stored is unknown, so the catalog refuses all later ones
    /// ([`CatalogError::Poisoned`]) until it is reopened.
    ///
    /// # Errors
    /// [`CatalogError::Fenced`] when another process has taken the catalog over, [`CatalogError::TimedOut`]
    /// and [`CatalogError::Store`] when the store fails.
    pub async fn commit(&self, batch: Batch) -> Result<(), CatalogError> {
        self.commit_all([batch]).await
    }

    /// Applies batches one after the other, each as a whole or not at all, and returns once all are durable.
    /// Together they cost one write to the store. Otherwise as [`commit`](Self::commit).
    ///
    /// # Errors
    /// As [`commit`](Self::commit). A name that is too long refuses all of them.
    pub async fn commit_all(&self, batches: impl IntoIterator<Item = Batch>) -> Result<(), CatalogError> {
        let batches = self.accept(batches)?;
        within(self.path(), "written", &self.config, self.write(batches)).await
    }

    /// Submits batches, one after the other, each applied as a whole or not at all, and in the order of
    /// submission. They are durable, and visible to readers, when [`InFlightBatches::durable`] returns, and not
    /// before.
    ///
    /// # Errors
    /// As [`commit_all`](Self::commit_all).
    pub async fn submit(
        &self,
        batches: impl IntoIterator<Item = Batch>,
    ) -> Result<InFlightBatches<'_>, CatalogError> {
        let batches = self.accept(batches)?;
        within(self.path(), "written", &self.config, self.take(batches)).await
    }

    /// Writes out the table in memory, stops all background tasks and closes the catalog. Calling it twice is
    /// no error.
    ///
    /// # Errors
    /// [`CatalogError::Fenced`], [`CatalogError::TimedOut`] or [`CatalogError::Store`]; committed batches are
    /// safe all the same.
    pub async fn close(&self) -> Result<(), CatalogError> {
        let tidy = !self.in_doubt.load(Ordering::Acquire);
        within(self.path(), "closed", &self.config, async {
            if tidy && self.upkeep.merged().await {
                // So that the manifest need not be written twice: the first time, without the merged files.
                self.db.refresh_manifest().await.ok();
            }
            // Upkeep goes on meanwhile: with too many fresh files, the table waits until some are merged.
            let options = FlushOptions { flush_type: FlushType::MemTable };
            let flushed = if tidy { self.db.flush_with_options(options).await } else { Ok(()) };
            self.upkeep.end().await;
            self.store.end();
            let closed = self.db.close_with_options(CloseOptions { flush_type: None }).await;
            match flushed.and(closed).map_err(|error| CatalogError::closing(self.path(), error)) {
                Err(CatalogError::Closed { .. }) => Ok(()),
                other => other,
            }
        })
        .await
    }

    async fn open_unbounded(
        store: Arc<dyn ObjectStore>,
        path: &str,
        config: CatalogConfig,
    ) -> Result<Self, CatalogError> {
        let owner = OwnerStore::of(store, path, config.cache.small_tables());
        let store: Arc<dyn ObjectStore> = Arc::clone(&owner) as _;
        let files = CatalogReader::refuse_newer(&store, path, &config).await?;
        let manifests = count_manifests(&store, path).await?;
        let clock = DbClock::new(config.clock.as_ref(), files.last_written);
        let (cache, id) = config.cache.share(path);
        let db = Db::builder(path.to_owned(), Arc::clone(&store))
            .with_settings(config.writer())
            .with_sst_block_size(BLOCK_SIZE)
            .with_db_cache(cache, id)
            .with_block_cache_policy(kept_as_written())
            .with_system_clock(Arc::clone(&clock) as _)
            .build()
            .await
            .map_err(|error| CatalogError::opening(path, error))?;
        let compact = CompactAsMerged::default();
        let upkept = Upkept {
            store,
            path: path.to_owned(),
            config: config.clone(),
            clock,
            compact: compact.clone(),
            db: db.clone(),
        };
        let catalog = Self {
            lookups: Lookups::new(Source::Writer(db.clone()), path),
            db,
            config,
            next_change: Mutex::new(0),
            flushing: Mutex::new(()),
            in_doubt: AtomicBool::new(false),
            upkeep: Upkeep::begin(upkept, files.fresh, manifests),
            store: owner,
        };
        if catalog.check_schema().await? != Some(SCHEMA) {
            catalog.write_schema().await?;
        }
        compact.allow();
        *catalog.next_change.lock().await = catalog.meta(NEXT_CHANGE).await?.unwrap_or_default();
        Ok(catalog)
    }

    /// Writes the schema of a fresh catalog, or of one from an earlier version, which would misread it from
    /// now on. The schema goes into a file at once, where [`CatalogReader::refuse_newer`] reads it.
    async fn write_schema(&self) -> Result<(), CatalogError> {
        let mut batch = Batch::new();
        batch.put_meta(SCHEMA_KEY, &SCHEMA);
        let written = self.take(vec![batch]).await?;
        let filed = async {
            let options = FlushOptions { flush_type: FlushType::MemTable };
            let filed = self.db.flush_with_options(options).await;
            filed.map_err(|error| CatalogError::writing(self.path(), error))
        };
        tokio::try_join!(written.flushed(), filed).map(drop)
    }

    /// The batches that change anything, if no key in them is too long.
    fn accept(&self, batches: impl IntoIterator<Item = Batch>) -> Result<Vec<Batch>, CatalogError> {
        self.check()?;
        let batches: Vec<Batch> = batches.into_iter().filter(|batch| !batch.is_empty()).collect();
        if let Some(TooLong { key, length }) = batches.iter().find_map(Batch::too_long) {
            let path = self.path().to_owned();
            let key = key.clone();
            return Err(CatalogError::KeyTooLong { path, key, length: *length, limit: LONGEST_KEY });
        }
        Ok(batches)
    }

    async fn write(&self, batches: Vec<Batch>) -> Result<(), CatalogError> {
        self.take(batches).await?.flushed().await
    }

    async fn take(&self, batches: Vec<Batch>) -> Result<InFlightBatches<'_>, CatalogError> {
        let mut handed_over = InFlightBatches::nothing(&self.db, &self.flushing, &self.config, self.path());
        for mut batch in batches {
            let mut next_change = self.next_change.lock().await;
            self.check()?;
            self.lookups.tally().commit(batch.rows());
            let numbered = *next_change + batch.changes.entries() as u64;
            if numbered > *next_change {
                batch.put_meta(NEXT_CHANGE, &numbered);
            }
            let writes = batch.into_writes(*next_change);
            let doubt = CommitGuard::about(&self.in_doubt);
            let failed = |error| CatalogError::writing(self.path(), error);
            handed_over.then(self.db.write(writes).await.map_err(failed)?, doubt);
            *next_change = numbered;
        }
        Ok(handed_over)
    }

    fn check(&self) -> Result<(), CatalogError> {
        let path = || self.path().to_owned();
        match self.db.status().close_reason {
            Some(CloseReason::Fenced) => Err(CatalogError::Fenced { path: path() }),
            Some(CloseReason::Clean) => Err(CatalogError::Closed { path: path() }),
            _ if self.in_doubt.load(Ordering::Acquire) => Err(CatalogError::Poisoned { path: path() }),
            _ => Ok(()),
        }
    }
}

impl Deref for Catalog {
    type Target = Lookups;

    fn deref(&self) -> &Lookups {
        &self.lookups
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        // The LSM's background tasks outlive its handle unless they are stopped.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let db = self.db.clone();
            runtime.spawn(async move { db.close_with_options(CloseOptions { flush_type: None }).await.ok() });
        }
    }
}
