//! The upkeep of an open catalog: merging its files, and removing those that are no longer needed.
//!
//! Merging costs a dozen requests to the store when it begins, as many again when it ends, and removal two dozen. A
//! fleet opens thousands of small catalogs for a second each. So both begin later. When there are files to merge, this
//! begins at the opening, and closing waits for its end: what is cut off costs the same, and merges nothing. Once in a
//! while there is a removal at the opening too, to its end.

use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutOptions, UpdateVersion};
use slatedb::config::{CompactorOptions, GarbageCollectorOptions};
use slatedb::{CompactorBuilder, Db, GarbageCollectorBuilder};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::DbClock;
use crate::compact_as_merged::CompactAsMerged;
use crate::config::{BLOCK_SIZE, CatalogConfig};
use crate::merge_schedule::MergeSchedule;

/// With so many fresh files, they are merged at once. That many are merged together at most.
const FILES_TO_MERGE: usize = 8;
/// How often the parts of such a merging look for each other's files. The store of an owner knows these, so looking
/// takes no requests.
const LOOKS_EVERY: Duration = Duration::from_millis(20);
/// How long closing waits for it.
const LONGEST_MERGING: Duration = Duration::from_secs(5);
/// When merging begins otherwise. Commits block at 32 fresh files, which takes longer to write.
const MERGES_AFTER: Duration = Duration::from_secs(5);
/// When removal begins.
const REMOVES_AFTER: Duration = Duration::from_secs(60);
/// With so many manifests, there is a removal at the opening too, if files are merged. From one merge to the next, a
/// catalog that is open for a moment each time writes about twenty.
const MANIFESTS_TO_REMOVE: usize = 100;
/// The longest time of such a removal: closing has 60 seconds.
const LONGEST_REMOVAL: Duration = Duration::from_secs(30);
/// The pause after an error of the store, before upkeep begins again.
const RESTS: Duration = Duration::from_secs(5);

/// The upkeep of an open catalog. Dropped, it ends soon.
pub(crate) struct Upkeep {
    stop: CancellationToken,
    dropped: CancellationToken,
    /// Where merging was due at the opening; cancelled when that has ended.
    merged: Option<CancellationToken>,
    tasks: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
}

/// What upkeep works on.
#[derive(Clone)]
pub(crate) struct Upkept {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: String,
    pub(crate) config: CatalogConfig,
    pub(crate) clock: Arc<DbClock>,
    pub(crate) compact: CompactAsMerged,
    /// The writer. Upkeep ends with it: another owner's must not be disturbed.
    pub(crate) db: Db,
}

impl Upkeep {
    /// Begins it, for a catalog that was opened with this many fresh files, and this many manifests.
    pub(crate) fn begin(of: Upkept, fresh_files: usize, manifests: usize) -> Self {
        let is_due = fresh_files >= FILES_TO_MERGE;
        let (stop, dropped) = (CancellationToken::new(), CancellationToken::new());
        let merged = is_due.then(CancellationToken::new);
        let merging = tokio::spawn(merge(of.clone(), merged.clone(), stop.clone()));
        let removes = is_due && manifests >= MANIFESTS_TO_REMOVE;
        let removal = tokio::spawn(remove(of, removes, stop.clone(), dropped.clone()));
        Self { stop, dropped, merged, tasks: tokio::sync::Mutex::new(vec![merging, removal]) }
    }

    /// Waits until the files are merged that were to be when the catalog was opened, but not for long. Returns whether
    /// there were any.
    pub(crate) async fn merged(&self) -> bool {
        let Some(merged) = &self.merged else { return false };
        tokio::time::timeout(LONGEST_MERGING, merged.cancelled()).await.ok();
        true
    }

    /// Ends it, and waits for that.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        for task in self.tasks.lock().await.drain(..) {
            // It panics only if the database does, whose writer then says so.
            task.await.ok();
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop.cancel();
        self.dropped.cancel();
    }
}

impl Upkept {
    /// Waits; false if upkeep has to end.
    async fn rests(&self, time: Duration, stop: &CancellationToken) -> bool {
        tokio::select! {
            () = stop.cancelled() => false,
            () = tokio::time::sleep(time) => self.db.status().close_reason.is_none(),
        }
    }

    fn note(&self, ended: Result<(), slatedb::Error>) {
        if let Err(error) = ended {
            tracing::warn!(catalog = self.path, %error, "the upkeep of a catalog has stopped, and begins again");
        }
    }

    async fn collector(&self) -> GarbageCollectorBuilder<String> {
        let conditional = overwrites_conditionally(&self.store, &self.path).await;
        let options: GarbageCollectorOptions = self.config.collector(conditional);
        GarbageCollectorBuilder::new(self.path.clone(), Arc::clone(&self.store))
            .with_options(options)
            .with_system_clock(Arc::clone(&self.clock) as _)
    }

    /// Removes once. It is not cut off when the catalog is closed: the last kinds of files would be left each time.
    async fn remove_once(&self, dropped: &CancellationToken) {
        let seconds = LONGEST_REMOVAL.as_secs();
        let removal = async { self.collector().await.build().run_gc_once().await };
        tokio::select! {
            () = removal => {}
            () = dropped.cancelled() => {}
            () = tokio::time::sleep(LONGEST_REMOVAL) => {
                tracing::warn!(catalog = self.path, seconds, "old files of a catalog take too long to remove");
            }
        }
    }

    /// Merges until `stop`, or until nothing is left to merge.
    async fn merge_all(&self, stop: &CancellationToken) {
        let idle = CancellationToken::new();
        let schedule = MergeSchedule { idle: idle.clone() };
        let compactor = self.compactor(LOOKS_EVERY).with_scheduler_supplier(Arc::new(schedule)).build();
        tokio::select! {
            ended = compactor.run() => self.note(ended),
            () = idle.cancelled() => {}
            () = stop.cancelled() => {}
        }
        compactor.stop().await.ok();
    }

    fn compactor(&self, looks_every: Duration) -> CompactorBuilder<String> {
        let options: CompactorOptions = self.config.compactor(looks_every);
        CompactorBuilder::new(self.path.clone(), Arc::clone(&self.store))
            .with_options(options)
            .with_sst_block_size(BLOCK_SIZE)
            .with_system_clock(Arc::clone(&self.clock) as _)
            .with_compaction_filter_supplier(Arc::new(self.compact.clone()))
    }
}

/// Merges files at once if that is due, and later until it has to end.
async fn merge(of: Upkept, due: Option<CancellationToken>, stop: CancellationToken) {
    if let Some(merged) = due {
        of.merge_all(&stop).await;
        merged.cancel();
    }
    let mut pause = MERGES_AFTER;
    while of.rests(pause, &stop).await {
        let compactor = of.compactor(of.config.poll_interval).build();
        tokio::select! {
            ended = compactor.run() => of.note(ended),
            () = stop.cancelled() => {}
        }
        compactor.stop().await.ok();
        pause = RESTS;
    }
}

/// Removes files once if it is due, and later until it has to end.
async fn remove(of: Upkept, is_due: bool, stop: CancellationToken, dropped: CancellationToken) {
    if is_due {
        of.remove_once(&dropped).await;
    }
    let mut pause = REMOVES_AFTER;
    while of.rests(pause, &stop).await {
        let collector = of.collector().await.build();
        tokio::select! {
            ended = collector.run() => of.note(ended),
            () = stop.cancelled() => {}
        }
        collector.stop().await.ok();
        pause = RESTS;
    }
}

/// Whether the store can overwrite an object only if it is unchanged. A local directory cannot. It is tested
/// with an overwrite of a missing object, which a store with this feature refuses; nothing is written.
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
