//! Memory and timeouts of a catalog.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{Clock, SystemClock};
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, CompressionCodec, DbReaderOptions,
    GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::db_cache::{DbCache, SplitCache};
use slatedb::{BlockCachePolicy, CacheTarget, SstBlockSize};

use crate::keyspace;
use crate::pending::Pending;
use crate::small_tables::SmallTables;

const MIB: usize = 1024 * 1024;

/// The database and its compactor must write files in the same way.
const CODEC: Option<CompressionCodec> = Some(CompressionCodec::Lz4);
const FILTER_FROM_KEYS: u32 = 1000;
/// The database and its compactor must write blocks of the same size.
pub(crate) const BLOCK_SIZE: SstBlockSize = SstBlockSize::Block8Kib;

/// Memory and timeouts of a catalog.
///
/// With the defaults, a process that only writes and reads a catalog of a million records at full speed stays
/// under 200 MiB resident (`examples/million.rs`). A clone shares the cache, so open all catalogs of a
/// process with clones of one configuration.
#[derive(Debug, Clone)]
pub struct CatalogConfig {
    /// Cache of recently read blocks, indexes and filters.
    pub cache: CacheBudget,
    /// Size at which the table in memory is written out as a file, in bytes. A reader that opens while a
    /// writer runs, and the next owner after a crash, read at most about this much of the log.
    pub memtable_bytes: usize,
    /// Bytes that may wait in memory to be written out before commits block; more than `memtable_bytes`.
    pub unflushed_bytes: usize,
    /// How often a writer checks for finished compactions, and a reader for the writer's changes. A reader's check
    /// is a request or two, which most object stores charge for; a writer asks the store every ten seconds.
    pub poll_interval: Duration,
    /// How long a commit, an opening or a closing may take before it fails.
    pub commit_timeout: Duration,
    /// Retries of one store operation (after 0.1 s, later every 1 to 2 s) before the caller's operation
    /// fails. It limits what `commit_timeout` does not: reads, scans and background work.
    pub store_retries: u32,
    /// The clock at the opening of a catalog. From then on, the database's time never goes back behind what
    /// it has written.
    pub clock: Arc<dyn Clock>,
}

/// Memory for recently read blocks, indexes and filters, shared by all catalogs that are opened with a clone.
#[derive(Clone)]
pub struct CacheBudget {
    cache: Arc<dyn DbCache>,
    tables: Arc<SmallTables>,
    block_bytes: usize,
    index_bytes: usize,
}

impl Default for CatalogConfig {
    fn default() -> Self {
        Self {
            cache: CacheBudget::new(16 * MIB, 24 * MIB).with_small_tables(4 * MIB),
            memtable_bytes: 8 * MIB,
            unflushed_bytes: 24 * MIB,
            poll_interval: Duration::from_secs(1),
            commit_timeout: Duration::from_secs(60),
            store_retries: 40,
            clock: Arc::new(SystemClock),
        }
    }
}

/// What the cache keeps of a file when it is written: indexes and filters, and of the records only the
/// pending ones. They are read soon, for dispatch. Resources are seldom read again before other blocks
/// replace them.
pub(crate) fn kept_as_written() -> BlockCachePolicy {
    let (from, end) = keyspace::all_of::<Pending>();
    let pending = CacheTarget::data::<Bytes, _>((from, Bound::Excluded(end)));
    BlockCachePolicy::default().with_flush_targets(&[CacheTarget::Index, CacheTarget::Filters, pending])
}

impl CatalogConfig {
    /// The settings of a writer. Upkeep is separate: see `upkeep`.
    pub(crate) fn writer(&self) -> Settings {
        Settings {
            // Every commit flushes by itself; a timer would only add cost.
            flush_interval: None,
            manifest_poll_interval: self.poll_interval,
            manifest_update_timeout: self.commit_timeout,
            min_filter_keys: FILTER_FROM_KEYS,
            l0_sst_size_bytes: self.memtable_bytes,
            max_unflushed_bytes: self.unflushed_bytes,
            l0_max_ssts: 32,
            l0_max_ssts_per_key: 32,
            l0_flush_parallelism: 1,
            compression_codec: CODEC,
            object_store_max_retries: Some(self.store_retries),
            compactor_options: None,
            garbage_collector_options: None,
            ..Settings::default()
        }
    }

    /// How files are merged. The parts of the merging look for each other's files every `poll_interval`.
    pub(crate) fn compactor(&self, poll_interval: Duration) -> CompactorOptions {
        CompactorOptions {
            poll_interval,
            manifest_update_timeout: self.commit_timeout,
            // One compaction for the fresh files while another merges old ones, so that commits need not
            // wait for the latter.
            max_concurrent_compactions: 2,
            commit_compacted_interval: poll_interval,
            object_store_max_retries: Some(self.store_retries),
            worker: Some(CompactionWorkerOptions {
                max_concurrent_compactions: 2,
                compactions_poll_interval: poll_interval,
                // A file stays in memory until the store has taken it, while the next one is written; so
                // do the indexes of merged files. With files of 64 MiB that would be up to 256 MiB on a
                // slow store.
                max_sst_size: 16 * MIB,
                max_fetch_tasks: 1,
                // Each piece is a request, and as many pieces are in memory as files are merged at the same
                // time: sixteen at most.
                bytes_to_fetch: MIB,
                max_subcompactions: 1,
                min_filter_keys: FILTER_FROM_KEYS,
                compression_codec: CODEC,
                ..CompactionWorkerOptions::default()
            }),
            ..CompactorOptions::default()
        }
    }

    /// How files that are no longer needed are removed. Removal of old manifests relies on conditional overwrites,
    /// where the store has them.
    pub(crate) fn collector(&self, conditional_overwrites: bool) -> GarbageCollectorOptions {
        let swept = |interval, min_age| {
            Some(GarbageCollectorDirectoryOptions {
                interval: Some(Duration::from_secs(interval)),
                min_age: Duration::from_secs(min_age),
                dry_run: false,
            })
        };
        GarbageCollectorOptions {
            wal_options: swept(60, 120),
            manifest_options: swept(300, 300),
            compacted_options: swept(300, 300),
            compactions_options: swept(300, 300),
            // Fences keep an earlier writer out, so these empty files are never removed.
            wal_fence_options: None,
            detach_options: None,
            boundary_files_enabled: conditional_overwrites,
            object_store_max_retries: Some(self.store_retries),
            ..GarbageCollectorOptions::default()
        }
    }

    /// The settings of a reader.
    pub(crate) fn reader(&self) -> DbReaderOptions {
        DbReaderOptions {
            manifest_poll_interval: self.poll_interval,
            max_memtable_bytes: self.memtable_bytes as u64,
            object_store_max_retries: Some(self.store_retries),
            ..DbReaderOptions::default()
        }
    }
}

impl CacheBudget {
    /// Capacity for blocks of records, and for indexes and filters, in bytes. A block that does not fit is
    /// fetched anew for each read.
    pub fn new(block_bytes: usize, index_bytes: usize) -> Self {
        let room = |bytes: usize| {
            let options = MokaCacheOptions { max_capacity: bytes as u64, ..MokaCacheOptions::default() };
            Some(Arc::new(MokaCache::new_with_opts(options)) as Arc<dyn DbCache>)
        };
        let split =
            SplitCache::new().with_block_cache(room(block_bytes)).with_meta_cache(room(index_bytes)).build();
        let tables = Arc::new(SmallTables::at_most(0));
        Self { cache: Arc::new(split), tables, block_bytes, index_bytes }
    }

    /// Also capacity for the small tables that the owner of a catalog wrote or read last, in bytes. They are read as a
    /// whole then, which saves most requests when they are merged.
    pub fn with_small_tables(self, bytes: usize) -> Self {
        Self { tables: Arc::new(SmallTables::at_most(bytes)), ..self }
    }

    /// The small tables.
    pub(crate) fn small_tables(&self) -> Arc<SmallTables> {
        Arc::clone(&self.tables)
    }

    /// The cache, and a number for the entries of the catalog at this path. When the catalog is opened again, they are
    /// still found: a table's name is random, is never used twice, and its bytes never change.
    pub(crate) fn share(&self, path: &str) -> (Arc<dyn DbCache>, u64) {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        (Arc::clone(&self.cache), hasher.finish())
    }
}

impl fmt::Debug for CacheBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBudget")
            .field("block_bytes", &self.block_bytes)
            .field("index_bytes", &self.index_bytes)
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_settings() {
        CatalogConfig::default().writer().validate().unwrap();
    }

    #[test]
    fn clones_share_their_cache_and_keep_the_entries_of_catalogs_apart() {
        let config = CatalogConfig::default();
        let (one, first) = config.cache.share("catalogs/a");
        let (other, second) = config.clone().cache.share("catalogs/b");
        assert!(Arc::ptr_eq(&one, &other));
        assert_ne!(first, second);
        assert_eq!(config.cache.share("catalogs/a").1, first);
    }
}
