//! A publisher that is killed after any write: readers miss nothing, and the next run continues.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use publish::{Archive, Place, Policy};
use tokio::sync::Semaphore;

use crate::past::are_readable;
use crate::reader::Follower;
use crate::world::{World, small};

/// Objects that fail every write and removal after the first few.
#[derive(Debug)]
pub(crate) struct Failing {
    objects: InMemory,
    /// Writes and removals that are left.
    pub(crate) left: Arc<AtomicI64>,
    /// Requests to remove that are left.
    pub(crate) deletes: AtomicI64,
    pub(crate) ignores_conditions: AtomicBool,
    /// The next PUT of a Change List, or of another file, if it is to come late.
    pub(crate) late: LatePut,
}

/// A PUT that a test holds: it reaches the objects late.
#[derive(Debug)]
pub(crate) struct LatePut {
    /// The folder of the file.
    wanted: Mutex<Option<&'static str>>,
    held: Semaphore,
    go_on: Semaphore,
}

impl LatePut {
    /// Holds the next one in this folder. It is held when this returns; the future of its run is `run`.
    pub(crate) async fn hold<T>(&self, folder: &'static str, run: Pin<&mut impl Future<Output = T>>) {
        *self.wanted.lock().unwrap() = Some(folder);
        tokio::select! {
            _ = run => panic!("it writes nothing into {folder}"),
            held = self.held.acquire() => held.unwrap().forget(),
        }
    }

    /// Lets it go on.
    pub(crate) fn release(&self) {
        self.go_on.add_permits(1);
    }

    async fn pass(&self, path: &Path) {
        let is_meant = self.wanted.lock().unwrap().take_if(|folder| path.as_ref().starts_with(*folder));
        if is_meant.is_some() {
            self.held.add_permits(1);
            self.go_on.acquire().await.unwrap().forget();
        }
    }
}

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failing")
    }
}

impl Failing {
    /// Objects that fail no write yet.
    pub(crate) fn new() -> Arc<Self> {
        let [left, deletes] = [AtomicI64::new(i64::MAX), AtomicI64::new(i64::MAX)];
        let ignores_conditions = AtomicBool::new(false);
        let [held, go_on] = [Semaphore::new(0), Semaphore::new(0)];
        let late = LatePut { wanted: Mutex::default(), held, go_on };
        Arc::new(Self { objects: InMemory::new(), left: Arc::new(left), deletes, ignores_conditions, late })
    }

    fn write(&self) -> object_store::Result<()> {
        count_down(&self.left)
    }
}

fn count_down(left: &AtomicI64) -> object_store::Result<()> {
    match left.fetch_sub(1, Ordering::Relaxed) {
        1.. => Ok(()),
        _ => Err(object_store::Error::Generic { store: "failing", source: "killed".into() }),
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(
        &self,
        path: &Path,
        body: PutPayload,
        mut options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.write()?;
        self.late.pass(path).await;
        if self.ignores_conditions.load(Ordering::Relaxed) {
            options.mode = PutMode::Overwrite;
        }
        self.objects.put_opts(path, body, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.write()?;
        self.objects.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.objects.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        if let Err(error) = count_down(&self.deletes) {
            return stream::iter([Err(error)]).boxed();
        }
        let left = Arc::clone(&self.left);
        self.objects.delete_stream(paths.map(move |path| count_down(&left).and(path)).boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

/// The kills of a test, at least.
const KILLS: i64 = 200;

/// Parts of Resource Lists that an index has named, with their bytes.
#[derive(Default)]
struct NamedParts(BTreeMap<String, Bytes>);

impl NamedParts {
    /// Takes those that the index names now. None of before may have other bytes: caches keep them.
    async fn look(&mut self, world: &World, when: &str) {
        let files: BTreeMap<String, Bytes> = world.files().await.into_iter().collect();
        for (path, known) in &self.0 {
            assert!(files.get(path).is_none_or(|bytes| bytes == known), "{path} was written again, {when}");
        }
        let index = files.get("resourcelist.xml").cloned().unwrap_or_default();
        let index = String::from_utf8(index.to_vec()).unwrap();
        let parts = files.into_iter().filter(|(path, _)| path.starts_with("resourcelist/"));
        self.0.extend(parts.filter(|(path, _)| index.contains(path.as_str())));
    }
}

/// A small Source that changes for some rounds; each publication is killed after `writes` writes, and repeated.
async fn killed_after(writes: i64, policy: Policy, is_guarded: bool) -> i64 {
    let failing = Failing::new();
    let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
    let place = Place::bucket("failing", Arc::clone(&objects));
    let place = if is_guarded { place.of_one_writer() } else { place };
    let mut world = World::at(place, objects, policy).await;
    for number in 0..9 {
        world.put(&format!("{number:03}"), &format!("body {number}")).await;
    }
    let mut reader = Follower::new(&world.objects);
    let mut is_published = false;
    let mut kills = 0;
    let mut parts = NamedParts::default();
    for round in 0..5 {
        failing.left.store(writes, Ordering::Relaxed);
        let killed = world.try_publish().await;
        parts.look(&world, &format!("killed after {writes}, round {round}")).await;
        if killed.is_err() {
            kills += 1;
            if is_published {
                // In between: all documents are right, and nothing is missed.
                reader.follow_between().await;
                Follower::new(&world.objects).follow_between().await;
            }
        }
        // Changes go on before the next attempt.
        world.put("004", &format!("round {round}")).await;
        failing.left.store(i64::MAX, Ordering::Relaxed);
        world.publish().await;
        parts.look(&world, &format!("published after {writes}, round {round}")).await;
        is_published = true;
        reader.follow().await;
        let stored = world.stored().await;
        assert_eq!(reader.held, stored, "killed after {writes}, round {round}");
        let mut fresh = Follower::new(&world.objects);
        fresh.follow().await;
        assert_eq!(fresh.held, stored, "killed after {writes}, round {round}");
        are_readable(&world).await;
        for number in 0..6 {
            world.put(&format!("{number:03}"), &format!("{number} in round {round}")).await;
        }
        world.delete("008").await;
        world.put(&format!("new-{round}"), "new").await;
    }
    kills
}

#[tokio::test]
async fn acc_4_a_publisher_killed_after_any_write_continues_and_readers_miss_nothing() {
    let mut all = 0;
    let guarded = policies().into_iter().take(2).map(|policy| (policy, true));
    for (policy, is_guarded) in policies().map(|policy| (policy, false)).into_iter().chain(guarded) {
        let mut writes = 0;
        loop {
            let kills = killed_after(writes, policy, is_guarded).await;
            all += kills;
            if kills == 0 {
                break;
            }
            writes += 1;
        }
        assert!(writes > 15, "{writes}");
    }
    println!("{all} kills");
    assert!(all >= KILLS, "{all}");
}

fn policies() -> [Policy; 4] {
    let archive = Archive::All;
    [
        Policy { archive, ..small() },
        Policy { changed_percent: 1_000_000, ..small() },
        Policy::default(),
        Policy { archive, edition_pause: Duration::ZERO, ..Policy::default() },
    ]
}

/// Rounds of changes, each published. With `writes`, a publication is killed after so many of them, and repeated at the
/// same time. Returns all that is at the place after each round, and how many were killed.
async fn rounds(writes: Option<i64>, policy: Policy, dumps: bool) -> (Vec<Vec<(String, Bytes)>>, i64) {
    let failing = Failing::new();
    let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
    let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, policy).await;
    world.publication.dumps = dumps;
    for number in 0..9 {
        world.put(&format!("{number:03}"), &format!("body {number}")).await;
    }
    let (mut states, mut kills) = (Vec::new(), 0);
    for round in 0..3 {
        if let Some(writes) = writes {
            failing.left.store(writes, Ordering::Relaxed);
            kills += i64::from(world.try_publish().await.is_err());
            failing.left.store(i64::MAX, Ordering::Relaxed);
        }
        world.publish().await;
        states.push(world.all_files().await);
        // What is old by then is removed.
        world.passes(24 * 3);
        for number in 0..5 {
            world.put(&format!("{number:03}"), &format!("{number} in round {round}")).await;
        }
        world.delete(&format!("{:03}", 8 - round)).await;
        world.put(&format!("new-{round}"), "new").await;
    }
    (states, kills)
}

/// When a list is complete, the clock of the process tells: it stands still here.
#[tokio::test(start_paused = true)]
async fn acc_4_after_a_kill_at_any_write_there_are_the_same_bytes_as_without_one() {
    let mut all = 0;
    for (policy, dumps) in policies().into_iter().zip([true, false, false, true]) {
        let (expected, _) = rounds(None, policy, dumps).await;
        for writes in 0.. {
            let (states, kills) = rounds(Some(writes), policy, dumps).await;
            for (round, (found, expected)) in states.iter().zip(&expected).enumerate() {
                same_bytes(found, expected, &format!("killed after {writes}, round {round}, {policy:?}"));
            }
            all += kills;
            if kills == 0 {
                break;
            }
        }
    }
    println!("{all} kills");
    assert!(all >= KILLS, "{all}");
}

/// The state without what a kill may change: the marks of when changes were told, which are by the clock of the process,
/// and whether files that nothing names are looked for after this run or the next one that writes.
fn without_times(state: &Bytes) -> serde_json::Value {
    let mut state: serde_json::Value = serde_json::from_slice(state).unwrap();
    let fields = state.as_object_mut().unwrap();
    fields.retain(|name, _| !matches!(name.as_str(), "told" | "orphans_due"));
    state
}

/// The same files with the same bytes.
#[track_caller]
fn same_bytes(found: &[(String, Bytes)], expected: &[(String, Bytes)], when: &str) {
    let paths = |files: &[(String, Bytes)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(found), paths(expected), "{when}");
    for ((path, found), (_, expected)) in found.iter().zip(expected) {
        let text = String::from_utf8_lossy;
        if path == ".thresher/publication.json" {
            assert_eq!(without_times(found), without_times(expected), "{path}, {when}");
            continue;
        }
        assert!(found == expected, "{path}, {when}: {}\n\n{}", text(found), text(expected));
    }
}

#[tokio::test]
async fn an_archive_that_begins_after_a_kill_has_no_list_of_another_time() {
    let policy = Policy { edition_pause: Duration::ZERO, ..Policy::default() };
    for writes in 0..12 {
        let failing = Failing::new();
        let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
        let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, policy).await;
        world.put("001", "first").await;
        world.publish().await;
        world.put("001", "second").await;
        failing.left.store(writes, Ordering::Relaxed);
        let _ = world.try_publish().await;
        failing.left.store(i64::MAX, Ordering::Relaxed);
        world.publication.policy.archive = Archive::All;
        world.put("001", "third").await;
        world.publish().await;
        are_readable(&world).await;
        world.put("001", "fourth").await;
        world.publish().await;
        are_readable(&world).await;
    }
}

/// The files of lists and packages that no document names.
async fn orphans(world: &World) -> Vec<String> {
    let all = world.all_files().await;
    let folders = ["resourcelist/", "changelist/", "resourcedump/", "changedump/", ".thresher/changes/"];
    let is_part = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
    let documents: Vec<String> = all
        .iter()
        .filter(|(path, _)| path.ends_with(".xml"))
        .map(|(_, bytes)| String::from_utf8(bytes.to_vec()).unwrap())
        .collect();
    let is_named = |path: &str| {
        documents.iter().any(|document| {
            document.contains(&format!("/{path}<")) || document.contains(&format!("/{path}\""))
        })
    };
    all.into_iter().map(|(path, _)| path).filter(|path| is_part(path) && !is_named(path)).collect()
}

#[tokio::test]
async fn files_that_a_killed_run_left_and_nothing_names_go_after_some_days() {
    let policy = Policy { package_entries: 3, ..small() };
    let mut seen = 0;
    for writes in 0..40 {
        let failing = Failing::new();
        let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
        let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, policy).await;
        world.publication.dumps = true;
        for number in 0..9 {
            world.put(&format!("{number:03}"), &format!("body {number}")).await;
        }
        world.publish().await;
        for number in 0..5 {
            world.put(&format!("{number:03}"), "other").await;
        }
        // Its Change List is closed, too.
        world.passes(2);
        failing.left.store(writes, Ordering::Relaxed);
        let _ = world.try_publish().await;
        failing.left.store(i64::MAX, Ordering::Relaxed);
        // The next run makes other packages.
        for number in 3..9 {
            world.put(&format!("{number:03}"), "another").await;
        }
        world.publish().await;
        // What was replaced goes, and what no document named is found.
        for hours in [49, 1] {
            world.passes(hours);
            world.publish().await;
        }
        let left = orphans(&world).await;
        seen += left.len();
        world.passes(46);
        world.publish().await;
        assert_eq!(orphans(&world).await, left, "a document of before may have named them");
        world.passes(2);
        world.publish().await;
        assert_eq!(orphans(&world).await, [""; 0], "killed after {writes}");
        let mut reader = Follower::new(&world.objects);
        reader.follow().await;
        assert_eq!(reader.held, world.stored().await);
        // Nothing is looked for where nothing was written.
        let before = world.all_files().await;
        world.passes(30);
        world.publish().await;
        assert_eq!(world.all_files().await, before);
    }
    assert!(seen > 0, "no kill left a file");
}
