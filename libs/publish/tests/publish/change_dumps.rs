//! Change Dumps.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fixity::Sha256;
use jiff::Timestamp;
use object_store::ObjectStore;
use publish::{Place, Policy};
use resourcesync::{Capability, Change, Entry, Item, Mode, Options, Reader, relation};
use zip::ZipArchive;

use crate::dumps::{held, with_dumps};
use crate::killed::Failing;
use crate::reader::{Follower, document, file};
use crate::world::{BASE, World, small};

/// A list is closed with each publication.
fn at_once() -> Policy {
    Policy { dumped_list_age: Duration::ZERO, ..small() }
}

/// A change of a package: when, what, and the digest of its bytes, if they are in the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    at: Timestamp,
    original: String,
    change: Change,
    pub(crate) declared: Option<String>,
    pub(crate) found: Option<String>,
}

fn original(entry: &Entry) -> String {
    entry.link(relation::VIA).expect("via").href.clone()
}

fn entries_of(xml: &[u8]) -> (resourcesync::Header, Vec<Entry>) {
    let options = Options { mode: Mode::Strict, ..Options::default() };
    let mut reader = Reader::new(xml, options).unwrap();
    let header = reader.header().unwrap().clone();
    let mut entries = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Entry(entry) = item else { panic!("a bad entry") };
        entries.push(*entry);
    }
    (header, entries)
}

/// All changes of the Change Dump. Every part is checked, and that intervals join. The second value is where it ends.
pub(crate) async fn packed(objects: &Arc<dyn ObjectStore>) -> (Vec<Packed>, Timestamp) {
    let dump = document(objects, &format!("{BASE}changedump.xml")).await;
    assert_eq!(dump.header.capability, Some(Capability::ChangeDump));
    assert!(dump.header.until.is_none(), "more packages follow");
    let mut until = dump.header.from.expect("from").instant();
    let mut all = Vec::new();
    for package in dump.entries {
        let told = &package.metadata;
        assert_eq!(told.from.expect("from").instant(), until, "packages join");
        let bytes = file(objects, &package.loc).await;
        assert_eq!(told.hash, Some(format!("sha-256:{}", Sha256::of(&bytes))));
        assert_eq!(told.length, Some(bytes.len() as u64));
        let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut manifest = Vec::new();
        zip.by_name("manifest.xml").unwrap().read_to_end(&mut manifest).unwrap();
        let contents = package.link(relation::CONTENTS).expect("contents");
        assert_eq!(file(objects, &contents.href).await, manifest);
        let (header, entries) = entries_of(&manifest);
        assert_eq!(header.capability, Some(Capability::ChangeDumpManifest));
        assert_eq!((header.from, header.until), (told.from, told.until));
        assert!(header.link(relation::UP).is_some());
        let mut members = BTreeSet::new();
        for entry in entries {
            let at = entry.metadata.datetime.expect("datetime").instant();
            assert!(at >= until && at <= told.until.unwrap().instant());
            until = at;
            let path = entry.metadata.path.as_deref().map(|path| path.strip_prefix('/').expect("from /"));
            let found = path.map(|path| {
                assert!(members.insert(path.to_owned()), "a member of its own");
                let mut body = Vec::new();
                zip.by_name(path).unwrap().read_to_end(&mut body).unwrap();
                Sha256::of(&body).to_string()
            });
            let declared = entry.metadata.hash.as_deref().map(|hash| hash["sha-256:".len()..].to_owned());
            let change = entry.metadata.change.expect("change");
            all.push(Packed { at, original: original(&entry), change, declared, found });
        }
        assert_eq!(zip.len(), members.len() + 1, "nothing else is in it");
        until = told.until.unwrap().instant();
    }
    (all, until)
}

/// What a reader has who takes the Resource Dump and then the Change Dump.
async fn by_dumps(objects: &Arc<dyn ObjectStore>) -> BTreeMap<String, String> {
    let dump = document(objects, &format!("{BASE}resourcedump.xml")).await;
    let at = dump.header.at.unwrap().instant();
    let mut held = held(objects).await;
    for change in packed(objects).await.0 {
        assert_eq!(change.change == Change::Deleted, change.declared.is_none());
        if change.at <= at {
            continue;
        }
        match change.found {
            Some(sha256) => drop(held.insert(change.original, sha256)),
            None => drop(held.remove(&change.original)),
        }
    }
    held
}

#[tokio::test]
async fn a_closed_list_is_a_package_with_the_bytes_of_each_change() {
    let mut world = with_dumps(20, at_once()).await;
    world.publish().await;
    assert_eq!(packed(&world.objects).await.0, [], "nothing has changed yet");
    for round in 0..4 {
        // The Resource Dump stays that of the beginning.
        world.publication.policy.dump_changed_percent = 1_000_000;
        world.put("003", &format!("round {round}")).await;
        world.put(&format!("new-{round}"), "new").await;
        world.delete(&format!("{:03}", round + 4)).await;
        let done = world.publish().await;
        assert_eq!((done.changes, done.change_packages), (3, 1));
        let (all, _) = packed(&world.objects).await;
        assert!(all.iter().all(|change| change.found == change.declared), "{all:?}");
        let versions = all.iter().filter(|change| change.original.ends_with("/003"));
        assert_eq!(versions.count(), round + 1, "one bitstream a change");
        assert_eq!(by_dumps(&world.objects).await, world.stored().await);
    }
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, world.stored().await);
    let own = world.own_files().await;
    assert!(own.iter().all(|path| !path.contains("/changes/")), "the packages have the bytes: {own:?}");
    let capabilities = document(&world.objects, &format!("{BASE}capabilitylist.xml")).await;
    let leads = |entry: &Entry| entry.metadata.capability == Some(Capability::ChangeDump);
    assert_eq!(capabilities.entries.iter().filter(|entry| leads(entry)).count(), 1);
}

#[tokio::test]
async fn bytes_that_later_changes_replaced_are_kept_until_the_list_is_closed() {
    let mut world = with_dumps(5, small()).await;
    world.publish().await;
    for round in 0..3 {
        world.put("001", &format!("round {round}")).await;
        assert_eq!(world.publish().await.change_packages, 0, "the list is open");
    }
    // What a sweep of the store would remove.
    world.damage("round 0").await;
    world.passes(2);
    world.publish().await;
    let (all, until) = packed(&world.objects).await;
    let found: Vec<_> = all.iter().filter_map(|change| change.found.clone()).collect();
    let expected: Vec<_> =
        (0..3).map(|round| Sha256::of(format!("round {round}").as_bytes()).to_string()).collect();
    assert_eq!(found, expected, "an hour has passed, and no further change was needed");
    assert!(until <= world.now());
    let idle = world.publish().await;
    assert_eq!((idle.documents, idle.change_packages), (0, 0));
}

#[tokio::test]
async fn a_full_package_closes_its_list() {
    let policy =
        Policy { most_entries: 1_000, package_entries: 4, dumped_list_age: Duration::ZERO, ..small() };
    let mut world = with_dumps(3, policy).await;
    world.publish().await;
    for number in 0..10 {
        world.put(&format!("{number:03}"), "another body").await;
    }
    let done = world.publish().await;
    assert_eq!((done.changes, done.change_packages), (10, 3));
    world.publication.policy.package_entries = 1_000;
    world.publication.policy.package_bytes = 10;
    for number in 0..4 {
        world.put(&format!("{number:03}"), "seven b").await;
    }
    assert_eq!(world.publish().await.change_packages, 2, "two of seven bytes are more than ten");
    assert_eq!(by_dumps(&world.objects).await, world.stored().await);
}

#[tokio::test]
async fn change_dumps_begin_and_end_when_the_operator_says_so() {
    let mut world = World::with(5, at_once()).await;
    world.publish().await;
    world.put("001", "before").await;
    world.publish().await;
    world.publication.dumps = true;
    world.publish().await;
    let dump = document(&world.objects, &format!("{BASE}resourcedump.xml")).await;
    let changes = document(&world.objects, &format!("{BASE}changedump.xml")).await;
    assert!(changes.header.from <= dump.header.at, "the Change Dump continues the Resource Dump");
    assert_eq!(packed(&world.objects).await.0, [], "those of before are in the Resource Dump");
    world.put("002", "after").await;
    world.publish().await;
    assert_eq!(by_dumps(&world.objects).await, world.stored().await);

    world.publication.dumps = false;
    world.put("003", "without").await;
    world.publish().await;
    packed(&world.objects).await;
    let capabilities = document(&world.objects, &format!("{BASE}capabilitylist.xml")).await;
    assert_eq!(capabilities.entries.len(), 2);
    world.publication.dumps = true;
    world.put("004", "again").await;
    world.publish().await;
    world.passes(49);
    world.publish().await;
    assert_eq!(by_dumps(&world.objects).await, world.stored().await, "it was taken up again, and stays");

    world.publication.dumps = false;
    world.publish().await;
    world.passes(49);
    world.publish().await;
    assert!(world.files().await.iter().all(|(path, _)| !path.starts_with("changedump")));
}

#[tokio::test]
async fn packages_go_with_their_lists() {
    let mut world = with_dumps(5, at_once()).await;
    world.publish().await;
    for day in 0..80 {
        world.passes(24);
        world.put("001", &format!("day {day}")).await;
        world.publish().await;
        packed(&world.objects).await;
    }
    let files = world.files().await;
    let count = |prefix: &str| files.iter().filter(|(path, _)| path.starts_with(prefix)).count();
    let lists = count("changelist/");
    assert!((31..40).contains(&lists), "{lists}");
    // All but the open list have a package and the copy of its manifest.
    assert_eq!(count("changedump/"), 2 * (lists - 1));
}

#[tokio::test]
async fn a_change_whose_bytes_are_damaged_has_no_path() {
    let mut world = with_dumps(5, at_once()).await;
    world.publication.with_bytes = false;
    world.publish().await;
    world.put("001", "damaged").await;
    world.put("002", "whole").await;
    world.damage("damaged").await;
    let done = world.publish().await;
    assert_eq!(done.change_packages, 1);
    assert!(done.damaged > 0);
    let (header, entries) = {
        let dump = document(&world.objects, &format!("{BASE}changedump.xml")).await;
        let contents = dump.entries[0].link(relation::CONTENTS).unwrap().href.clone();
        let bytes = file(&world.objects, &contents).await;
        let mut reader = Reader::new(&bytes[..], Options::default()).unwrap();
        let header = reader.header().unwrap().clone();
        let mut entries = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            let Item::Entry(entry) = item else { panic!("a bad entry") };
            entries.push(*entry);
        }
        (header, entries)
    };
    assert_eq!(header.capability, Some(Capability::ChangeDumpManifest));
    let paths: Vec<_> = entries.iter().map(|entry| entry.metadata.path.as_deref()).collect();
    assert_eq!(paths, [None, Some("/resources/00001")]);
}

#[tokio::test]
async fn changes_of_long_ago_do_not_close_a_list_each() {
    let mut world = World::with(3, Policy { most_entries: 1_000, ..small() }).await;
    world.publish().await;
    for number in 0..30 {
        world.put(&format!("{number:03}"), "changed").await;
    }
    world.passes(24 * 6);
    world.publish().await;
    let lists = world.files().await.into_iter().filter(|(path, _)| path.starts_with("changelist/"));
    assert!(lists.count() <= 2);
}

#[tokio::test]
async fn a_change_dump_killed_after_any_write_is_whole_at_each_point() {
    for writes in 0.. {
        let failing = Failing::new();
        let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
        let policy = Policy { edition_pause: Duration::ZERO, ..at_once() };
        let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, policy).await;
        world.publication.dumps = true;
        for number in 0..8 {
            world.put(&format!("{number:03}"), &format!("body {number}")).await;
        }
        let mut reader = Follower::new(&world.objects);
        let mut kills = 0;
        for round in 0..3 {
            failing.left.store(writes, Ordering::Relaxed);
            kills += usize::from(world.try_publish().await.is_err());
            if round > 0 {
                let (all, _) = packed(&world.objects).await;
                assert!(all.iter().all(|change| change.found == change.declared), "{all:?}");
                reader.follow_between().await;
            }
            // Changes go on before the next attempt.
            world.put("007", &format!("in between {round}")).await;
            failing.left.store(i64::MAX, Ordering::Relaxed);
            world.publish().await;
            reader.follow().await;
            let stored = world.stored().await;
            assert_eq!(reader.held, stored, "after {writes}, round {round}");
            assert_eq!(by_dumps(&world.objects).await, stored, "after {writes}, round {round}");
            world.put(&format!("{:03}", round * 2), &format!("round {round}")).await;
            world.put(&format!("{:03}", round * 2), &format!("round {round} again")).await;
            world.delete(&format!("{:03}", round * 2 + 1)).await;
        }
        if kills == 0 {
            assert!(writes > 15, "{writes}");
            return;
        }
    }
}
