//! How much memory a catalog takes, and how long it waits.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use model::{Clock, SystemClock};
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, CompressionCodec, DbReaderOptions,
    GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::db_cache::{DbCache, SplitCache};
use slatedb::{BlockCachePolicy, CacheTarget};

use crate::keyspace;
use crate::pending::Pending;

const MIB: usize = 1024 * 1024;

/// Both the database and its compactor must write files in the same way.
const CODEC: Option<CompressionCodec> = Some(CompressionCodec::Lz4);
const FILTER_FROM_KEYS: u32 = 1000;

/// How much memory a catalog takes, and how long it waits.
///
/// With the defaults, a process that does nothing but write and read a catalog of a million records at full speed stays
/// under 200 MiB resident (`examples/million.rs`). A clone shares the cache, so the catalogs of one process are opened
/// with clones of one configuration.
#[derive(Debug, Clone)]
pub struct CatalogConfig {
    /// Blocks, indexes and filters that were read lately.
    pub cache: CacheBudget,
    /// When the table in memory is written out as a file, in bytes. A reader that opens beside the writer, and the next
    /// owner after a crash, read at most about this much of the log.
    pub memtable_bytes: usize,
    /// How much may wait in memory to be written out before commits have to wait, in bytes; more than `memtable_bytes`.
    pub unflushed_bytes: usize,
    /// How often a writer looks for finished compactions, and a reader for the writer's news. Each look is a request or
    /// two, paid for in most object stores.
    pub poll_interval: Duration,
    /// How long a commit, an opening or a closing may take before it is given up.
    pub commit_timeout: Duration,
    /// How often one operation on the store is tried again (0.1 s later, then up to every 1 to 2 s) before what needed
    /// it fails. It bounds what `commit_timeout` does not: reads, scans and the upkeep in the background.
    pub store_retries: u32,
    /// What time it is when a catalog is opened. The database reckons from then on, and never back behind what it has written.
    pub clock: Arc<dyn Clock>,
}

/// Memory for blocks, indexes and filters that were read lately, shared by all catalogs that are opened with a clone.
#[derive(Clone)]
pub struct CacheBudget {
    cache: Arc<dyn DbCache>,
    next_id: Arc<AtomicU64>,
    block_bytes: usize,
    index_bytes: usize,
}

impl Default for CatalogConfig {
    fn default() -> Self {
        Self {
            cache: CacheBudget::new(16 * MIB, 24 * MIB),
            memtable_bytes: 8 * MIB,
            unflushed_bytes: 24 * MIB,
            poll_interval: Duration::from_secs(1),
            commit_timeout: Duration::from_secs(60),
            store_retries: 40,
            clock: Arc::new(SystemClock),
        }
    }
}

/// What the cache takes of a file as it is written: beside what tells where things lie in it, the pending records alone. They are read soon, to be sent out; what is held is seldom
/// asked for again before others have taken its place.
pub(crate) fn kept_as_written() -> BlockCachePolicy {
    let (from, end) = keyspace::all_of::<Pending>();
    let pending = CacheTarget::data::<Bytes, _>((from, Bound::Excluded(end)));
    BlockCachePolicy::default().with_flush_targets(&[CacheTarget::Index, CacheTarget::Filters, pending])
}

impl CatalogConfig {
    /// The settings of a writer. Sweeping old manifests relies on conditional overwrites, where the store has them.
    pub(crate) fn writer(&self, conditional_overwrites: bool) -> Settings {
        let swept = |interval, min_age| {
            Some(GarbageCollectorDirectoryOptions {
                interval: Some(Duration::from_secs(interval)),
                min_age: Duration::from_secs(min_age),
                dry_run: false,
            })
        };
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
            compactor_options: Some(CompactorOptions {
                poll_interval: self.poll_interval,
                manifest_update_timeout: self.commit_timeout,
                // One for the fresh files while another merges old ones, so that commits need not wait for the latter.
                max_concurrent_compactions: 2,
                commit_compacted_interval: self.poll_interval,
                object_store_max_retries: Some(self.store_retries),
                worker: Some(CompactionWorkerOptions {
                    max_concurrent_compactions: 2,
                    compactions_poll_interval: self.poll_interval,
                    // A file is held until the store has taken it, and the next one is made meanwhile; the index of each file that is merged is
                    // held too. With files of 64 MiB that would be up to 256 MiB where the store is slow.
                    max_sst_size: 16 * MIB,
                    max_fetch_tasks: 1,
                    bytes_to_fetch: MIB / 4,
                    max_subcompactions: 1,
                    min_filter_keys: FILTER_FROM_KEYS,
                    compression_codec: CODEC,
                    ..CompactionWorkerOptions::default()
                }),
                ..CompactorOptions::default()
            }),
            garbage_collector_options: Some(GarbageCollectorOptions {
                wal_options: swept(60, 120),
                manifest_options: swept(300, 300),
                compacted_options: swept(300, 300),
                compactions_options: swept(300, 300),
                // The fences are what keeps a forgotten writer out: they stay, empty as they are.
                wal_fence_options: None,
                detach_options: None,
                boundary_files_enabled: conditional_overwrites,
                object_store_max_retries: Some(self.store_retries),
                ..GarbageCollectorOptions::default()
            }),
            ..Settings::default()
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
    /// Room for blocks of records, and for indexes and filters, in bytes. What does not fit is fetched anew by each read
    /// that needs it.
    pub fn new(block_bytes: usize, index_bytes: usize) -> Self {
        let room = |bytes: usize| {
            let options = MokaCacheOptions { max_capacity: bytes as u64, ..MokaCacheOptions::default() };
            Some(Arc::new(MokaCache::new_with_opts(options)) as Arc<dyn DbCache>)
        };
        let split =
            SplitCache::new().with_block_cache(room(block_bytes)).with_meta_cache(room(index_bytes)).build();
        Self { cache: Arc::new(split), next_id: Arc::new(AtomicU64::new(0)), block_bytes, index_bytes }
    }

    /// The cache, and a number that keeps one catalog's entries apart from another's.
    pub(crate) fn share(&self) -> (Arc<dyn DbCache>, u64) {
        (Arc::clone(&self.cache), self.next_id.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Debug for CacheBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBudget")
            .field("block_bytes", &self.block_bytes)
            .field("index_bytes", &self.index_bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_settings() {
        CatalogConfig::default().writer(true).validate().unwrap();
    }

    #[test]
    fn clones_share_their_cache_and_keep_their_entries_apart() {
        let config = CatalogConfig::default();
        let (one, first) = config.cache.share();
        let (other, second) = config.clone().cache.share();
        assert!(Arc::ptr_eq(&one, &other));
        assert_ne!(first, second);
    }
}
