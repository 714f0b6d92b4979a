//! What it costs to open and close a catalog, in requests to the store.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use catalog::{Catalog, CatalogConfig, CatalogError};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use jiff::SignedDuration;
use model::ManualClock;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use slatedb_common::retry::NonRetryable;
use tokio::time::Instant;

use crate::records::*;

/// A store in memory that notes each request.
#[derive(Debug, Default)]
struct Noting {
    inner: InMemory,
    requests: Mutex<Vec<String>>,
    /// Whether no table can be written.
    refuses_tables: AtomicBool,
    /// Whether writing one fails for good.
    fails_tables: AtomicBool,
}

impl Noting {
    fn note(&self, what: &str, at: Option<&Path>) {
        self.requests.lock().unwrap().push(format!("{what} {}", at.map_or("", |at| at.as_ref())));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

impl fmt::Display for Noting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Noting")
    }
}

#[async_trait]
impl ObjectStore for Noting {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.note("PUT", Some(at));
        if self.refuses_tables.load(Ordering::Acquire) && at.as_ref().contains("/compacted/") {
            return Err(Error::Generic { store: "Noting", source: "it is full".into() });
        }
        if self.fails_tables.load(Ordering::Acquire) && at.as_ref().contains("/compacted/") {
            let source = Box::new(NonRetryable("it is broken".into()));
            return Err(Error::Generic { store: "Noting", source });
        }
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.note("PUT", Some(at));
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.note(if options.head { "HEAD" } else { "GET" }, Some(at));
        self.inner.get_opts(at, options).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.note("GET", Some(at));
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.note("DELETE", None);
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.note("LIST", prefix);
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.note("LIST", prefix);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.note("LIST", prefix);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.note("COPY", Some(to));
        self.inner.copy_opts(from, to, options).await
    }
}

async fn open(store: &Arc<Noting>) -> Catalog {
    Catalog::open(store.clone(), "catalogs/a", CatalogConfig::default()).await.unwrap()
}

/// Opens it, changes something and closes it.
async fn use_once(store: &Arc<Noting>, path: &str) {
    let catalog = open(store).await;
    put(&catalog, path).await.unwrap();
    catalog.close().await.unwrap();
}

/// Whether files are merged, and whether old ones are looked for, by these requests.
fn upkeep(requests: &[String]) -> (bool, bool) {
    let merges = requests.iter().any(|request| request.starts_with("PUT catalogs/a/compactions/"));
    (merges, requests.iter().any(|request| request == "LIST catalogs/a/wal"))
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_is_open_for_a_moment_has_no_upkeep() {
    let store = Arc::new(Noting::default());
    use_once(&store, "a").await;
    store.take();
    let catalog = open(&store).await;
    let requests = store.take();
    // Its table is one of them: this process has no cache of it.
    assert!(requests.len() <= 10, "{requests:#?}");
    put(&catalog, "b").await.unwrap();
    assert_eq!(store.take().len(), 1);
    catalog.close().await.unwrap();
    let requests = store.take();
    assert!(requests.len() <= 3, "{requests:#?}");
}

/// How many of these requests begin like this.
fn count(requests: &[String], beginning: &str) -> usize {
    requests.iter().filter(|request| request.starts_with(beginning)).count()
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_is_open_and_idle_asks_the_store_seldom() {
    let store = Arc::new(Noting::default());
    let catalog = open(&store).await;
    // Merging has begun, and removal has not.
    tokio::time::sleep(Duration::from_secs(20)).await;
    store.take();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let requests = store.take();
    // Two series and their boundaries, every ten seconds.
    assert!(requests.len() <= 4 * 4, "{requests:#?}");
    assert_eq!(count(&requests, "GET"), requests.len(), "{requests:#?}");
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn merging_is_told_of_fresh_files_without_requests_for_what_this_process_wrote() {
    let store = Arc::new(Noting::default());
    // Each batch fills the table in memory.
    let config =
        CatalogConfig { memtable_bytes: 4096, unflushed_bytes: 1024 * 1024, ..CatalogConfig::default() };
    let catalog = Catalog::open(store.clone(), "catalogs/a", config).await.unwrap();
    store.take();
    for n in 0..8 {
        let mut batch = catalog::Batch::new();
        for m in 0..40 {
            batch.put_resource(&uri(&format!("{n:02}/{m:02}")), &resource("x"));
        }
        catalog.commit(batch).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let requests = store.take();
    assert!(upkeep(&requests).0, "{requests:#?}");
    let manifests = count(&requests, "PUT catalogs/a/manifest/");
    // A manifest is read once at most: by its writer, to learn whether it is the next one.
    let read = count(&requests, "GET catalogs/a/manifest/");
    assert!(manifests >= 2 && read <= manifests, "{read} of {manifests}: {requests:#?}");
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_log_is_looked_for_with_one_request() {
    let store = Arc::new(Noting::default());
    use_once(&store, "a").await;
    store.take();
    let catalog = open(&store).await;
    let requests = store.take();
    // Of eight looks for the end, the first one. What this owner's own fence is need not be asked.
    assert_eq!(count(&requests, "HEAD"), 1, "{requests:#?}");
    for path in ["b", "c", "d"] {
        put(&catalog, path).await.unwrap();
    }
    // As after a crash: nothing of the log is in tables.
    let other = open(&store).await;
    assert_eq!(paths(&other, "", None).await, ["a", "b", "c", "d"]);
    assert!(matches!(put(&catalog, "e").await, Err(CatalogError::Fenced { .. })));
    other.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn merging_reads_no_small_table_twice_and_none_that_this_process_wrote() {
    for is_same_process in [true, false] {
        let store = Arc::new(Noting::default());
        let shared = CatalogConfig::default();
        let config = || if is_same_process { shared.clone() } else { CatalogConfig::default() };
        for number in 0..7 {
            let catalog = Catalog::open(store.clone(), "catalogs/a", config()).await.unwrap();
            put(&catalog, &number.to_string()).await.unwrap();
            catalog.close().await.unwrap();
        }
        store.take();
        let catalog = Catalog::open(store.clone(), "catalogs/a", config()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(paths(&catalog, "", None).await, ["0", "1", "2", "3", "4", "5", "6"]);
        let requests = store.take();
        assert!(upkeep(&requests).0, "{requests:#?}");
        let mut read: Vec<_> =
            requests.iter().filter(|request| request.starts_with("GET catalogs/a/compacted/")).collect();
        assert_eq!(read.is_empty(), is_same_process, "{requests:#?}");
        let all = read.len();
        read.sort();
        read.dedup();
        assert_eq!(read.len(), all, "{requests:#?}");
        catalog.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_this_process_had_open_reads_none_of_its_tables_again() {
    let store = Arc::new(Noting::default());
    let config = CatalogConfig::default();
    let open = || Catalog::open(store.clone(), "catalogs/a", config.clone());
    let catalog = open().await.unwrap();
    put(&catalog, "a").await.unwrap();
    catalog.close().await.unwrap();
    for _ in 0..2 {
        let catalog = open().await.unwrap();
        assert!(catalog.resource(&uri("a")).await.unwrap().is_some());
        catalog.close().await.unwrap();
    }
    store.take();
    let catalog = open().await.unwrap();
    assert!(catalog.resource(&uri("a")).await.unwrap().is_some());
    let requests = store.take();
    assert_eq!(count(&requests, "GET catalogs/a/compacted/"), 0, "{requests:#?}");
    assert_eq!(count(&requests, "LIST"), 1, "{requests:#?}");
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_owner_learns_soon_that_another_has_taken_the_catalog_over() {
    let store = Arc::new(Noting::default());
    let former = open(&store).await;
    put(&former, "a").await.unwrap();
    let owner = open(&store).await;
    put(&owner, "b").await.unwrap();
    // By itself, without a write.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let error = former.resource(&uri("a")).await.unwrap_err();
    assert!(matches!(error, CatalogError::Fenced { .. }), "{error}");
    assert_eq!(paths(&owner, "", None).await, ["a", "b"]);
    owner.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_stays_open_has_upkeep_soon() {
    let store = Arc::new(Noting::default());
    let catalog = open(&store).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(upkeep(&store.take()), (false, false));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(upkeep(&store.take()), (true, false));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(upkeep(&store.take()), (false, true));
    catalog.close().await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    store.take();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(store.take(), Vec::<String>::new(), "upkeep ends with the catalog");
}

#[tokio::test(start_paused = true)]
async fn every_eighth_opening_merges_and_closing_waits_for_that() {
    let store = Arc::new(Noting::default());
    // The first one leaves two files: with the schema, and with what it was used for.
    for number in 0..7 {
        use_once(&store, &number.to_string()).await;
        assert_eq!(upkeep(&store.take()), (false, false), "after {number}");
    }
    // It is closed at once.
    let catalog = open(&store).await;
    put(&catalog, "7").await.unwrap();
    let began = Instant::now();
    catalog.close().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let requests = store.take();
    assert_eq!(upkeep(&requests), (true, false));
    // What was merged, and the table of this opening.
    assert_eq!(count(&requests, "PUT catalogs/a/compacted/"), 2, "{requests:#?}");
    let catalog = open(&store).await;
    assert_eq!(paths(&catalog, "", None).await, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    catalog.close().await.unwrap();
    assert_eq!(upkeep(&store.take()), (false, false), "they are merged");
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_long_for_a_merge_that_another_process_was_killed_at() {
    let store = Arc::new(Noting::default());
    let clock = Arc::new(ManualClock::new("2040-01-01T00:00:00Z".parse().unwrap()));
    let config = CatalogConfig { clock: clock.clone(), ..CatalogConfig::default() };
    let opened =
        async |store: &Arc<Noting>| Catalog::open(store.clone(), "catalogs/a", config.clone()).await.unwrap();
    for number in 0..7 {
        let catalog = opened(&store).await;
        put(&catalog, &number.to_string()).await.unwrap();
        catalog.close().await.unwrap();
    }
    // The merge is claimed, and its table cannot be written.
    store.refuses_tables.store(true, Ordering::Release);
    let killed = opened(&store).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(upkeep(&store.take()).0);
    let left = Arc::new(Noting { inner: store.inner.fork(), ..Noting::default() });
    drop(killed);
    let catalog = opened(&left).await;
    let began = Instant::now();
    catalog.close().await.unwrap();
    let waited = began.elapsed();
    assert!((4..=6).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!(count(&left.take(), "PUT catalogs/a/compacted/"), 0, "it is claimed");
    // The claim ends after half a minute.
    clock.advance(SignedDuration::from_secs(60));
    let catalog = opened(&left).await;
    let began = Instant::now();
    catalog.close().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(count(&left.take(), "PUT catalogs/a/compacted/"), 1, "it is merged");
    let catalog = opened(&left).await;
    assert_eq!(paths(&catalog, "", None).await, ["0", "1", "2", "3", "4", "5", "6"]);
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_merge_that_fails_is_not_begun_again_at_once() {
    let store = Arc::new(Noting::default());
    for number in 0..7 {
        use_once(&store, &number.to_string()).await;
    }
    store.fails_tables.store(true, Ordering::Release);
    let catalog = open(&store).await;
    store.take();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let requests = store.take();
    assert!(upkeep(&requests).0, "{requests:#?}");
    assert!(requests.len() <= 100, "{requests:#?}");
    // It is begun again later.
    store.fails_tables.store(false, Ordering::Release);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(count(&store.take(), "PUT catalogs/a/compacted/"), 1);
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_closing_owner_disturbs_none_that_has_taken_the_catalog_over() {
    let store = Arc::new(Noting::default());
    for number in 0..7 {
        use_once(&store, &number.to_string()).await;
    }
    let former = open(&store).await;
    put(&former, "a").await.unwrap();
    let owner = open(&store).await;
    put(&owner, "b").await.unwrap();
    assert!(matches!(former.close().await, Err(CatalogError::Fenced { .. })));
    put(&owner, "c").await.unwrap();
    owner.close().await.unwrap();
    let all = ["0", "1", "2", "3", "4", "5", "6", "a", "b", "c"];
    let catalog = open(&store).await;
    assert_eq!(paths(&catalog, "", None).await, all);
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn old_files_of_a_catalog_that_is_open_for_moments_are_removed_now_and_then() {
    let store = Arc::new(Noting::default());
    let clock = Arc::new(ManualClock::new("2040-01-01T00:00:00Z".parse().unwrap()));
    let config = CatalogConfig { clock: clock.clone(), ..CatalogConfig::default() };
    let (mut merges, mut removals) = (0, 0);
    for number in 0..150 {
        clock.advance(SignedDuration::from_mins(10));
        let catalog = Catalog::open(store.clone(), "catalogs/a", config.clone()).await.unwrap();
        put(&catalog, &format!("{number:03}")).await.unwrap();
        // Less than after which merging begins in any case.
        tokio::time::sleep(Duration::from_secs(3)).await;
        catalog.close().await.unwrap();
        let (merged, removed) = upkeep(&store.take());
        merges += usize::from(merged);
        removals += usize::from(removed);
    }
    assert!(removals >= 2 && merges >= 4 * removals, "{merges} merges, {removals} removals");
    for (folder, most) in [("manifest", 150), ("compactions", 150), ("compacted", 60)] {
        let folder = Path::from(format!("catalogs/a/{folder}"));
        let left = store.inner.list(Some(&folder)).count().await;
        assert!(left <= most, "{left} files of {folder}");
    }
    // Fences are never removed.
    let log: Vec<_> = store.inner.list(Some(&"catalogs/a/wal".into())).try_collect().await.unwrap();
    let records = log.iter().filter(|file| file.size > 0).count();
    assert!(records <= 150, "{records} files of the log");
}
