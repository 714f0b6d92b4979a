//! The log, as its owner looks for its end.
//!
//! An opening looks for eight files together, 1 to 128 after the last one that it knows of. After a clean close there
//! is none of them. The log has no gaps after the last file known, on which the database relies, too. So these looks
//! go out one after the other, and the first one that finds nothing answers the later ones that wait. None answers a
//! look that begins after it: another owner may have written meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetResult, ObjectMeta, ObjectStore, PutResult, Result};
use slatedb::object_store_tag::ObjectStoreCallTag;

use super::number_of;
use crate::known_object::{answer, written};

/// The log of a catalog.
#[derive(Debug)]
pub(super) struct Log {
    folder: Path,
    /// How many looks have found nothing.
    misses: AtomicU64,
    /// The file that the last of them looked for. Held while a look is out.
    missing: tokio::sync::Mutex<Option<u64>>,
    /// The empty file with which this owner has begun. It never changes.
    fence: Mutex<Option<ObjectMeta>>,
}

impl Log {
    /// The log of the catalog at `path`.
    pub(super) fn of(path: &str) -> Self {
        Self {
            folder: Path::from(format!("{path}/wal")),
            misses: AtomicU64::new(0),
            missing: tokio::sync::Mutex::default(),
            fence: Mutex::default(),
        }
    }

    /// Whether an object is in its folder.
    pub(super) fn has(&self, at: &Path) -> bool {
        at.prefix_matches(&self.folder)
    }

    /// Records that this owner has begun with the empty file `at`.
    pub(super) fn note_fence(&self, at: &Path, put: &PutResult) {
        *self.fence() = Some(written(at, 0, put));
    }

    /// Looks whether there is a file.
    pub(super) async fn look(
        &self,
        store: &dyn ObjectStore,
        at: &Path,
        options: GetOptions,
    ) -> Result<GetResult> {
        if let Some(fence) = self.fence().clone().filter(|fence| fence.location == *at) {
            return Ok(answer(fence, 0..0, Bytes::new()));
        }
        // A look for the end has no tag. Reading the log again has one: its files are known, and asked for together.
        let is_for_the_end = options.extensions.get::<ObjectStoreCallTag>().is_none();
        let number = number_of(at, &self.folder, ".sst").filter(|_| is_for_the_end);
        let Some(number) = number else { return store.get_opts(at, options).await };
        let before = self.misses.load(Ordering::Acquire);
        // So that all looks that begin together have begun when the first one goes out.
        tokio::task::yield_now().await;
        let mut missing = self.missing.lock().await;
        let came_meanwhile = self.misses.load(Ordering::Acquire) > before;
        if came_meanwhile && missing.is_some_and(|missing| missing <= number) {
            let source = "an earlier file of the log was not there".into();
            return Err(Error::NotFound { path: at.to_string(), source });
        }
        let answer = store.get_opts(at, options).await;
        if matches!(answer, Err(Error::NotFound { .. })) {
            *missing = Some(number);
            self.misses.fetch_add(1, Ordering::Release);
        }
        answer
    }

    fn fence(&self) -> MutexGuard<'_, Option<ObjectMeta>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::{ObjectStoreExt, PutMode};
    use slatedb::object_store_tag::{SstType, TableStoreKind};

    use super::*;

    fn file(number: u64) -> Path {
        Path::from(format!("catalogs/a/wal/{number:020}.sst"))
    }

    async fn has(log: &Log, store: &InMemory, number: u64) -> bool {
        let look = GetOptions { head: true, ..GetOptions::default() };
        match log.look(store, &file(number), look).await {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn of_looks_that_begin_together_the_first_that_finds_nothing_answers_the_later_ones() {
        let store = InMemory::new();
        let log = Log::of("catalogs/a");
        // A gap that no log has shows who answers.
        for number in [1, 2, 8] {
            store.put(&file(number), "x".into()).await.unwrap();
        }
        let looks = [1, 2, 4, 8].map(|number| has(&log, &store, number));
        assert_eq!(futures::future::join_all(looks).await, [true, true, false, false]);
        let looks = [8, 4, 2].map(|number| has(&log, &store, number));
        assert_eq!(
            futures::future::join_all(looks).await,
            [true, false, true],
            "nothing tells of earlier files"
        );
    }

    #[tokio::test]
    async fn a_look_that_begins_later_asks_the_store() {
        let store = InMemory::new();
        let log = Log::of("catalogs/a");
        assert!(!has(&log, &store, 1).await);
        // Another owner's.
        for number in [1, 2] {
            store.put(&file(number), "x".into()).await.unwrap();
        }
        assert!(has(&log, &store, 2).await);
        assert!(has(&log, &store, 1).await);
    }

    #[tokio::test]
    async fn files_that_are_known_to_be_there_wait_for_no_other() {
        let store = InMemory::new();
        let log = Log::of("catalogs/a");
        store.put(&file(8), "x".into()).await.unwrap();
        let tag = ObjectStoreCallTag::new(TableStoreKind::Main, SstType::Wal);
        let look = GetOptions { head: true, extensions: tag.into(), ..GetOptions::default() };
        let at = file(8);
        let (end, known) = tokio::join!(has(&log, &store, 4), log.look(&store, &at, look));
        assert!(!end);
        assert_eq!(known.unwrap().meta.size, 1);
    }

    #[tokio::test]
    async fn the_owners_own_fence_is_not_asked_for() {
        let store = InMemory::new();
        let log = Log::of("catalogs/a");
        let put = store.put_opts(&file(3), "".into(), PutMode::Create.into()).await.unwrap();
        log.note_fence(&file(3), &put);
        store.delete(&file(3)).await.unwrap();
        let look = || GetOptions { head: true, ..GetOptions::default() };
        let meta = log.look(&store, &file(3), look()).await.unwrap().meta;
        assert_eq!((meta.size, meta.e_tag), (0, put.e_tag));
        assert!(!has(&log, &store, 2).await);
    }
}
