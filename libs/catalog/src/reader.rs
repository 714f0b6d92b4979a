//! Reads a catalog while its writer runs.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, future};
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::{DbReader, DbReaderMode};

use crate::clock::{DbClock, Files};
use crate::lookups::Source;
use crate::{CatalogConfig, CatalogError, Lookups};

/// A catalog opened for reading. It writes nothing, and needs no writer.
///
/// It sees a writer's commit after a poll interval at the latest ([`CatalogConfig::poll_interval`]).
pub struct CatalogReader {
    lookups: Lookups,
    reader: Arc<DbReader>,
}

impl CatalogReader {
    /// Opens the catalog at `path` of a store.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`] when there is none, [`CatalogError::NewerSchema`] when a later version wrote it,
    /// [`CatalogError::TimedOut`] and [`CatalogError::Store`] when the store fails.
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        path: &str,
        config: CatalogConfig,
    ) -> Result<Self, CatalogError> {
        within(path, "opened", &config, async {
            if !exists(&store, path).await? {
                return Err(CatalogError::NotFound { path: path.to_owned() });
            }
            let reader = Self::attach(store, path, &config, false).await?;
            match reader.check_schema().await {
                Ok(_) => Ok(reader),
                Err(error) => {
                    reader.close().await.ok();
                    Err(error)
                }
            }
        })
        .await
    }

    /// Stops following the writer, and all background tasks.
    ///
    /// # Errors
    /// When a background task had failed.
    pub async fn close(&self) -> Result<(), CatalogError> {
        self.reader.close().await.map_err(|error| CatalogError::closing(self.path(), error))
    }

    /// Refuses a catalog with a later schema, by its files alone: the log is not read, nothing is written,
    /// and a running writer is not disturbed. Returns what the files say else.
    pub(crate) async fn refuse_newer(
        store: &Arc<dyn ObjectStore>,
        path: &str,
        config: &CatalogConfig,
    ) -> Result<Files, CatalogError> {
        if !exists(store, path).await? {
            return Ok(Files::default());
        }
        let reader = Self::attach(Arc::clone(store), path, config, true).await?;
        let schema = reader.check_schema().await;
        let files = Files::of(&reader.reader.manifest());
        reader.close().await?;
        schema.map(|_| files)
    }

    async fn attach(
        store: Arc<dyn ObjectStore>,
        path: &str,
        config: &CatalogConfig,
        skip_log: bool,
    ) -> Result<Self, CatalogError> {
        let mut options = config.reader();
        options.skip_wal_replay = skip_log;
        let (cache, id) = config.cache.share(path);
        let reader = DbReader::builder(path.to_owned(), store)
            // The other modes write checkpoints into the catalog.
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(options)
            .with_db_cache(cache, id)
            .with_system_clock(DbClock::new(config.clock.as_ref(), 0))
            .build()
            .await
            .map_err(|error| CatalogError::opening(path, error))?;
        let reader = Arc::new(reader);
        Ok(Self { lookups: Lookups::new(Source::Reader(Arc::clone(&reader)), path), reader })
    }
}

impl Deref for CatalogReader {
    type Target = Lookups;

    fn deref(&self) -> &Lookups {
        &self.lookups
    }
}

impl fmt::Debug for CatalogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogReader").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Drop for CatalogReader {
    fn drop(&mut self) {
        // The LSM's background tasks outlive its handle unless they are stopped.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let reader = Arc::clone(&self.reader);
            runtime.spawn(async move { reader.close().await.ok() });
        }
    }
}

/// Whether there is a catalog at `path`.
pub(crate) async fn exists(store: &Arc<dyn ObjectStore>, path: &str) -> Result<bool, CatalogError> {
    let manifests = Path::from(format!("{path}/manifest"));
    match store.list(Some(&manifests)).next().await {
        None => Ok(false),
        Some(Ok(_)) => Ok(true),
        Some(Err(error)) => Err(unlisted(path, error)),
    }
}

/// The number of manifests of the catalog at `path`. An opening has listed them a moment ago, which the store of an
/// owner remembers.
pub(crate) async fn count_manifests(store: &Arc<dyn ObjectStore>, path: &str) -> Result<usize, CatalogError> {
    let manifests = store.list(Some(&Path::from(format!("{path}/manifest"))));
    let count = manifests.try_fold(0, |count, _| future::ok(count + 1)).await;
    count.map_err(|error| unlisted(path, error))
}

/// The error for a catalog whose files the store does not list.
pub(crate) fn unlisted(path: &str, error: object_store::Error) -> CatalogError {
    let cause =
        slatedb::Error::unavailable("its folder cannot be listed".into()).with_source(Box::new(error));
    CatalogError::opening(path, cause)
}

/// Runs `work` with the configured timeout.
pub(crate) async fn within<T>(
    path: &str,
    doing: &'static str,
    config: &CatalogConfig,
    work: impl Future<Output = Result<T, CatalogError>>,
) -> Result<T, CatalogError> {
    let after = config.commit_timeout;
    tokio::time::timeout(after, work)
        .await
        .unwrap_or_else(|_| Err(CatalogError::TimedOut { path: path.to_owned(), doing, after }))
}
