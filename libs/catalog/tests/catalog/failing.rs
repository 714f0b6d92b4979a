//! A store that begins to fail, like a full disk or a lost server, and counts reads of tables.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use catalog::{Batch, CacheBudget, Catalog, CatalogConfig, CatalogError, CatalogReader};
use futures::stream::{BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::records::*;

const WELL: u8 = 0;
const FAILS: u8 = 1;
const HANGS: u8 = 2;

/// A store in memory that can be told to fail or to never answer.
#[derive(Debug, Default)]
struct Failing {
    inner: InMemory,
    mood: AtomicU8,
    reads: AtomicUsize,
}

impl Failing {
    fn turns(&self, mood: u8) {
        self.mood.store(mood, Ordering::SeqCst);
    }

    /// How often a read of a table has begun.
    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    fn count(&self, at: &Path) {
        let is_table = at.parts().any(|part| part.as_ref() == "compacted");
        self.reads.fetch_add(usize::from(is_table), Ordering::SeqCst);
    }

    async fn gate(&self) -> Result<()> {
        match self.mood.load(Ordering::SeqCst) {
            WELL => Ok(()),
            FAILS => Err(full()),
            _ => std::future::pending().await,
        }
    }
}

fn full() -> object_store::Error {
    object_store::Error::Generic { store: "failing", source: "no space left on device".into() }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failing")
    }
}

#[async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.gate().await?;
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.gate().await?;
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.count(at);
        self.gate().await?;
        self.inner.get_opts(at, options).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.count(at);
        self.gate().await?;
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.mood.load(Ordering::SeqCst) {
            WELL => self.inner.list(prefix),
            FAILS => futures::stream::iter([Err(full())]).boxed(),
            _ => futures::stream::pending().boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.gate().await?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.gate().await?;
        self.inner.copy_opts(from, to, options).await
    }
}

/// Each table is read in pieces, also a small one.
fn in_pieces() -> CatalogConfig {
    CatalogConfig { cache: CacheBudget::new(16 * 1024 * 1024, 24 * 1024 * 1024), ..CatalogConfig::default() }
}

async fn open(store: &Arc<Failing>) -> std::result::Result<Catalog, CatalogError> {
    Catalog::open(store.clone(), "catalogs/a", in_pieces()).await
}

#[tokio::test(start_paused = true)]
async fn a_commit_into_a_failing_store_ends_and_what_was_committed_is_kept() {
    for mood in [FAILS, HANGS] {
        let store = Arc::new(Failing::default());
        let catalog = open(&store).await.unwrap();
        put(&catalog, "a").await.unwrap();
        store.turns(mood);
        let error = put(&catalog, "b").await.unwrap_err();
        assert!(matches!(error, CatalogError::TimedOut { .. } | CatalogError::Store { .. }), "{error}");
        assert!(error.is_retryable());
        let error = put(&catalog, "c").await.unwrap_err();
        assert!(matches!(error, CatalogError::Poisoned { .. }), "{error}");
        assert_eq!(
            catalog.resource(&uri("b")).await.ok().flatten(),
            None,
            "what is not durable is not shown"
        );
        // Closing ends too, with or without an error.
        catalog.close().await.ok();

        store.turns(WELL);
        let catalog = open(&store).await.unwrap();
        put(&catalog, "d").await.unwrap();
        let held = paths(&catalog, "", None).await;
        assert!(held == ["a", "d"] || held == ["a", "b", "d"], "{held:?}");
        catalog.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_rides_out_a_short_failure() {
    let store = Arc::new(Failing::default());
    let catalog = open(&store).await.unwrap();
    store.turns(FAILS);
    let repair = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        store.turns(WELL);
    };
    let (committed, ()) = tokio::join!(put(&catalog, "a"), repair);
    committed.unwrap();
    assert_eq!(paths(&catalog, "", None).await, ["a"]);
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn opening_from_a_failing_store_ends() {
    for mood in [FAILS, HANGS] {
        let store = Arc::new(Failing::default());
        open(&store).await.unwrap().close().await.unwrap();
        store.turns(mood);
        let error = open(&store).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let config = CatalogConfig::default();
        let error = CatalogReader::open(store.clone(), "catalogs/a", config).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scan_reads_the_next_piece_beside_the_first_and_a_walk_does_not() {
    let store = Arc::new(Failing::default());
    let catalog = open(&store).await.unwrap();
    let mut batch = Batch::new();
    for n in 0..8_000 {
        let path = format!("{n:04}");
        batch.put_resource(&uri(&path), &resource(&path));
    }
    catalog.commit(batch).await.unwrap();
    catalog.close().await.unwrap();

    let catalog = open(&store).await.unwrap();
    let before = store.reads();
    let mut walk = catalog.walk_resources();
    assert!(walk.find(uri("0000").as_str().as_bytes()).await.unwrap().is_some());
    let of_walk = store.reads() - before;
    catalog.close().await.unwrap();

    let catalog = open(&store).await.unwrap();
    let before = store.reads();
    let mut scan = catalog.scan_resources_unread(1).await.unwrap();
    assert!(scan.next().await.unwrap().is_ok());
    assert_eq!(store.reads() - before, of_walk + 1);
    catalog.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_what_is_written_out_pending_records_alone_stay_at_hand() {
    let store = Arc::new(Failing::default());
    let small = CatalogConfig { memtable_bytes: 64 * 1024, unflushed_bytes: 96 * 1024, ..in_pieces() };
    let catalog = Catalog::open(store.clone(), "catalogs/a", small).await.unwrap();
    // No batch is accepted before the previous one is written out, if there is no room for both.
    for round in 0..3 {
        let mut batch = Batch::new();
        for n in 0..200 {
            let path = format!("{round}/{n:04}");
            batch.put_resource(&uri(&path), &resource(&path));
            batch.put_pending(&uri(&path), &pending(n));
        }
        catalog.commit(batch).await.unwrap();
    }
    let before = store.reads();
    assert!(catalog.pending(&uri("0/0100")).await.unwrap().is_some());
    assert_eq!(store.reads(), before);
    assert!(catalog.resource(&uri("0/0100")).await.unwrap().is_some());
    assert!(store.reads() > before);
    catalog.close().await.unwrap();
}
