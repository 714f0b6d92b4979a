//! The one writer of a catalog.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutOptions, UpdateVersion};
use slatedb::config::{CloseOptions, FlushOptions, FlushType};
use slatedb::{CloseReason, Db, SstBlockSize, WriteHandle};
use tokio::sync::Mutex;

use crate::batch::TooLong;
use crate::clock::DbClock;
use crate::keyspace::LONGEST_KEY;
use crate::lookups::Source;
use crate::meta::{NEXT_CHANGE, SCHEMA, SCHEMA_KEY};
use crate::reader::{CatalogReader, exists, within};
use crate::{Batch, CatalogConfig, CatalogError, Lookups};

/// A catalog opened to be written. A Source has one writer: opening takes the catalog over, and whoever had it open
/// before gets [`CatalogError::Fenced`] from then on.
///
/// A dropped catalog writes nothing more, as after a crash; [`close`](Self::close) it to leave it tidy.
pub struct Catalog {
    lookups: Lookups,
    db: Db,
    config: CatalogConfig,
    /// The next number of the change log. Whoever numbers entries holds it until they are handed over, so that numbers
    /// count up in the order of commits.
    next_change: Mutex<u64>,
    /// Held while the log is flushed: those who wait for it meanwhile share the next flush.
    flushing: Mutex<()>,
    in_doubt: AtomicBool,
}

/// A batch was handed over and nobody knows yet whether it is stored. Dropped before that is known, the catalog is in doubt.
struct Doubt<'a>(Option<&'a AtomicBool>);

impl Catalog {
    /// Opens the catalog at `path` of a store (`catalogs/<source>`) to write, and creates it if there is none.
    ///
    /// # Errors
    /// [`CatalogError::NewerSchema`] when a later version wrote it (whose writer is then left alone),
    /// [`CatalogError::TimedOut`] and [`CatalogError::Store`] when the store fails.
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        path: &str,
        config: CatalogConfig,
    ) -> Result<Self, CatalogError> {
        within(path, "opened", &config.clone(), Self::open_unbounded(store, path, config)).await
    }

    /// Whether a catalog lies at `path` of a store.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn exists(store: &Arc<dyn ObjectStore>, path: &str) -> Result<bool, CatalogError> {
        exists(store, path).await
    }

    /// Applies a batch: all of it or nothing. It returns once the batch is durable, so that nothing is acknowledged that
    /// a crash could take back. Commits that wait at the same time share one write to the store.
    ///
    /// It may be dropped at any time, as in a `select!` with a signal that the store is in trouble: it does not hang
    /// for longer than [`CatalogConfig::commit_timeout`] by itself, but such a signal is quicker and says why. Whether a
    /// batch that was given up is stored is not known, so the catalog refuses all later ones
    /// ([`CatalogError::Poisoned`]); opening it anew tells what is there.
    ///
    /// # Errors
    /// [`CatalogError::Fenced`] when another process has taken the catalog over, [`CatalogError::TimedOut`] and
    /// [`CatalogError::Store`] when the store fails.
    pub async fn commit(&self, batch: Batch) -> Result<(), CatalogError> {
        self.commit_all([batch]).await
    }

    /// Applies batches one after the other, each of them wholly or not at all, and returns once all are durable: together they cost one write to the
    /// store. As [`commit`](Self::commit) in all else.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). A name that is too long refuses all of them.
    pub async fn commit_all(&self, batches: impl IntoIterator<Item = Batch>) -> Result<(), CatalogError> {
        self.check()?;
        let batches: Vec<Batch> = batches.into_iter().filter(|batch| !batch.is_empty()).collect();
        if batches.is_empty() {
            return Ok(());
        }
        if let Some(TooLong { key, length }) = batches.iter().find_map(Batch::too_long) {
            let (path, key) = (self.path().to_owned(), key.clone());
            return Err(CatalogError::KeyTooLong { path, key, length: *length, limit: LONGEST_KEY });
        }
        within(self.path(), "written", &self.config, self.write(batches)).await
    }

    /// Writes out what is in memory, stops all work in the background and lets the catalog go. Doing it twice is no error.
    ///
    /// # Errors
    /// [`CatalogError::Fenced`], [`CatalogError::TimedOut`] or [`CatalogError::Store`]; what was committed is safe all
    /// the same.
    pub async fn close(&self) -> Result<(), CatalogError> {
        let tidy = !self.in_doubt.load(Ordering::Acquire);
        let options = CloseOptions { flush_type: tidy.then_some(FlushType::MemTable) };
        within(self.path(), "closed", &self.config, async {
            match self
                .db
                .close_with_options(options)
                .await
                .map_err(|error| CatalogError::closing(self.path(), error))
            {
                Err(CatalogError::Closed { .. }) => Ok(()),
                other => other,
            }
        })
        .await
    }

    /// How many times pending records were written or removed since this was opened: whoever knows that all of them were its own knows the records too.
    pub fn pending_written(&self) -> u64 {
        self.lookups.tally().pending()
    }

    async fn open_unbounded(
        store: Arc<dyn ObjectStore>,
        path: &str,
        config: CatalogConfig,
    ) -> Result<Self, CatalogError> {
        let last_written = CatalogReader::refuse_newer(&store, path, &config).await?;
        let settings = config.writer(overwrites_conditionally(&store, path).await);
        let (cache, id) = config.cache.share();
        let db = Db::builder(path.to_owned(), store)
            .with_settings(settings)
            .with_sst_block_size(SstBlockSize::Block8Kib)
            .with_db_cache(cache, id)
            .with_system_clock(DbClock::new(config.clock.as_ref(), last_written))
            .build()
            .await
            .map_err(|error| CatalogError::opening(path, error))?;
        let catalog = Self {
            lookups: Lookups::new(Source::Writer(db.clone()), path),
            db,
            config,
            next_change: Mutex::new(0),
            flushing: Mutex::new(()),
            in_doubt: AtomicBool::new(false),
        };
        if catalog.check_schema().await? != Some(SCHEMA) {
            catalog.write_schema().await?;
        }
        *catalog.next_change.lock().await = catalog.meta(NEXT_CHANGE).await?.unwrap_or_default();
        Ok(catalog)
    }

    /// Marks a fresh catalog, or one that an earlier version wrote: from now on that one would misread it. The mark goes into a file at once, where [`CatalogReader::refuse_newer`] looks.
    async fn write_schema(&self) -> Result<(), CatalogError> {
        let mut batch = Batch::new();
        batch.put_meta(SCHEMA_KEY, &SCHEMA);
        self.write([batch]).await?;
        let options = FlushOptions { flush_type: FlushType::MemTable };
        self.db.flush_with_options(options).await.map_err(|error| CatalogError::writing(self.path(), error))
    }

    async fn write(&self, batches: impl IntoIterator<Item = Batch>) -> Result<(), CatalogError> {
        let failed = |error| CatalogError::writing(self.path(), error);
        let mut written = None;
        for batch in batches {
            let (handle, doubt) = self.hand_over(batch).await?;
            // The doubt about those before is the same.
            if let Some((_, before)) = written.replace((handle, doubt)) {
                before.settle();
            }
        }
        // What is handed over later is durable later.
        let Some((handle, doubt)) = written else { return Ok(()) };
        {
            let _turn = self.flushing.lock().await;
            if !self.is_durable(&handle) {
                self.db.flush().await.map_err(failed)?;
            }
        }
        handle.await_durable().await.map_err(failed)?;
        doubt.settle();
        Ok(())
    }

    /// Puts a batch where reads find it. It is not durable yet.
    async fn hand_over(&self, batch: Batch) -> Result<(WriteHandle, Doubt<'_>), CatalogError> {
        let mut next_change = self.next_change.lock().await;
        self.check()?;
        let mut numbered = *next_change;
        self.lookups.tally().commit(&batch);
        let writes = batch.into_writes(&mut numbered);
        let doubt = Doubt(Some(&self.in_doubt));
        let handle =
            self.db.write(writes).await.map_err(|error| CatalogError::writing(self.path(), error))?;
        *next_change = numbered;
        Ok((handle, doubt))
    }

    fn is_durable(&self, handle: &WriteHandle) -> bool {
        self.db.status().durable_seq >= handle.seqnum()
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
        // The LSM's background tasks outlive its handle unless they are told to stop.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let db = self.db.clone();
            runtime.spawn(async move { db.close_with_options(CloseOptions { flush_type: None }).await.ok() });
        }
    }
}

impl Doubt<'_> {
    fn settle(mut self) {
        self.0 = None;
    }
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if let Some(in_doubt) = self.0 {
            in_doubt.store(true, Ordering::Release);
        }
    }
}

/// Whether the store can overwrite an object only if it is the one that was read. A local directory cannot. Asked with an
/// overwrite of something that is not there, which a store that can refuses; nothing is written.
async fn overwrites_conditionally(store: &Arc<dyn ObjectStore>, path: &str) -> bool {
    let nothing = Path::from(format!("{path}/probe/conditional-overwrite"));
    let version = UpdateVersion { e_tag: Some("\"never\"".to_owned()), version: None };
    let options = PutOptions { mode: PutMode::Update(version), ..PutOptions::default() };
    let answer = store.put_opts(&nothing, "".into(), options).await;
    !matches!(
        answer,
        Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. })
    )
}
