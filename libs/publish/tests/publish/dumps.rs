//! Resource Dumps.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fixity::Sha256;
use jiff::Timestamp;
use object_store::ObjectStore;
use publish::{Place, Policy};
use resourcesync::{Capability, Item, Mode, Options, Reader, relation};
use zip::ZipArchive;

use crate::killed::Failing;
use crate::reader::{Follower, document, file};
use crate::world::{BASE, World, small};

fn packed() -> Policy {
    Policy { package_entries: 4, ..small() }
}

pub(crate) async fn with_dumps(resources: usize, policy: Policy) -> World {
    let mut world = World::with(resources, policy).await;
    world.publication.dumps = true;
    world
}

/// What the packages hold: the digest of each resource, by the URI of its original. Every part is checked.
pub(crate) async fn held(objects: &Arc<dyn ObjectStore>) -> BTreeMap<String, String> {
    let dump = document(objects, &format!("{BASE}resourcedump.xml")).await;
    assert_eq!(dump.header.capability, Some(Capability::ResourceDump));
    let mut packages = Vec::new();
    if dump.header.is_index() {
        for part in &dump.entries {
            let read = document(objects, &part.loc).await;
            assert_eq!((read.header.at, read.header.completed), (dump.header.at, dump.header.completed));
            let index = read.header.link(relation::INDEX).map(|link| link.href.clone());
            assert_eq!(index, Some(format!("{BASE}resourcedump.xml")));
            packages.extend(read.entries);
        }
    } else {
        packages = dump.entries;
    }
    let mut held = BTreeMap::new();
    for package in packages {
        let bytes = file(objects, &package.loc).await;
        let told = &package.metadata;
        assert_eq!(told.hash, Some(format!("sha-256:{}", Sha256::of(&bytes))));
        assert_eq!(told.length, Some(bytes.len() as u64));
        let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut manifest = Vec::new();
        zip.by_name("manifest.xml").unwrap().read_to_end(&mut manifest).unwrap();
        let contents = package.link(relation::CONTENTS).expect("contents");
        assert_eq!(file(objects, &contents.href).await, manifest);
        let options = Options { mode: Mode::Strict, ..Options::default() };
        let mut reader = Reader::new(&manifest[..], options).unwrap();
        let header = reader.header().unwrap().clone();
        assert_eq!(header.capability, Some(Capability::ResourceDumpManifest));
        assert_eq!(header.at, told.at);
        assert!(header.link(relation::UP).is_some());
        while let Some(item) = reader.next().unwrap() {
            let Item::Entry(entry) = item else { panic!("a bad entry in a manifest") };
            let path =
                entry.metadata.path.as_deref().and_then(|path| path.strip_prefix('/')).expect("a path");
            let mut body = Vec::new();
            zip.by_name(path).unwrap().read_to_end(&mut body).unwrap();
            let sha256 = Sha256::of(&body).to_string();
            assert_eq!(entry.metadata.hash, Some(format!("sha-256:{sha256}")));
            let original = entry.link(relation::VIA).unwrap().href.clone();
            assert!(held.insert(original, sha256).is_none(), "{} is there twice", entry.loc);
        }
    }
    held
}

async fn packages(world: &World) -> Vec<String> {
    let files = world.files().await.into_iter();
    files
        .map(|(path, _)| path)
        .filter(|path| path.starts_with("resourcedump/") && path.ends_with(".zip"))
        .collect()
}

#[tokio::test]
async fn packages_have_all_bytes_and_the_capability_list_leads_to_them() {
    for (resources, policy) in [(50, packed()), (7, Policy::default())] {
        let world = with_dumps(resources, policy).await;
        let done = world.publish().await;
        assert!(done.packages > 0);
        assert_eq!(held(&world.objects).await, world.stored().await);
        let capabilities = document(&world.objects, &format!("{BASE}capabilitylist.xml")).await;
        let leads = |entry: &resourcesync::Entry| entry.metadata.capability == Some(Capability::ResourceDump);
        assert!(capabilities.entries.iter().any(leads));
        let mut reader = Follower::new(&world.objects);
        reader.follow().await;
        assert_eq!(reader.held, world.stored().await);
    }
}

#[tokio::test]
async fn a_new_dump_keeps_the_packages_that_did_not_change() {
    let mut world = with_dumps(60, Policy { dump_changed_percent: 0, ..packed() }).await;
    let first = world.publish().await;
    let before = packages(&world).await;
    world.put("030", "new").await;
    let done = world.publish().await;
    assert_eq!((done.packages, done.packages_kept), (1, first.packages - 1));
    assert_eq!(held(&world.objects).await, world.stored().await);
    let after = packages(&world).await;
    assert!(before.iter().all(|path| after.contains(path)), "readers of the old dump find all of it");

    let idle = world.publish().await;
    assert_eq!((idle.packages, idle.documents), (0, 0));
    for hours in [25, 25] {
        world.passes(hours);
        world.publish().await;
    }
    assert_eq!(packages(&world).await.len() as u64, first.packages, "the replaced one is gone");
}

#[tokio::test]
async fn a_dump_is_not_made_anew_for_few_changes_and_the_change_lists_reach_back_to_it() {
    let mut world = with_dumps(50, packed()).await;
    world.publish().await;
    world.put("001", "new").await;
    let done = world.publish().await;
    assert_eq!((done.packages, done.packages_kept), (0, 0), "2 % changed");
    for day in 0..40 {
        world.passes(24);
        world.put("001", &format!("day {day}")).await;
        world.publish().await;
        let dump = document(&world.objects, &format!("{BASE}resourcedump.xml")).await;
        let changes = document(&world.objects, &format!("{BASE}changelist.xml")).await;
        assert!(changes.header.from <= dump.header.at, "day {day}");
        for package in &dump.entries {
            assert!(changes.header.from <= package.metadata.at, "day {day}");
        }
    }
    let dump = document(&world.objects, &format!("{BASE}resourcedump.xml")).await;
    let after: jiff::Timestamp = "2026-01-29T00:00:00Z".parse().unwrap();
    assert!(dump.header.at.unwrap().instant() > after, "it was made anew after 30 days");
    assert_eq!(held(&world.objects).await.len(), 50);
}

#[tokio::test]
async fn a_dump_of_more_packages_than_one_document_has_is_an_index() {
    let policy = Policy { most_packages: 3, dump_changed_percent: 0, ..packed() };
    let mut world = with_dumps(60, policy).await;
    let done = world.publish().await;
    assert!(done.packages > 6, "{}", done.packages);
    assert_eq!(held(&world.objects).await, world.stored().await);
    let index = document(&world.objects, &format!("{BASE}resourcedump.xml")).await;
    assert!(index.header.is_index() && index.entries.len() as u64 == done.packages.div_ceil(3));
    let of_dump = async |world: &World| {
        let files = world.files().await.into_iter();
        files.filter(|(path, _)| path.starts_with("resourcedump/")).count()
    };
    let before = of_dump(&world).await;
    world.put("030", "new").await;
    world.publish().await;
    assert_eq!(held(&world.objects).await, world.stored().await);
    for part in &index.entries {
        document(&world.objects, &part.loc).await;
    }
    for _ in 0..2 {
        world.passes(25);
        world.publish().await;
    }
    assert_eq!(of_dump(&world).await, before, "the replaced parts are gone");
    assert_eq!(held(&world.objects).await, world.stored().await);
    let idle = world.publish().await;
    assert_eq!((idle.packages, idle.documents), (0, 0));
}

#[tokio::test]
async fn the_changes_join_a_dump_as_long_as_it_may_be_used() {
    // It is made anew for its age alone.
    let mut world = with_dumps(50, Policy { dump_changed_percent: 1_000, ..packed() }).await;
    world.publish().await;
    let mut dumps: Vec<(Timestamp, Timestamp)> = Vec::new();
    for day in 0..70 {
        world.passes(24);
        world.put("001", &format!("day {day}")).await;
        world.publish().await;
        let dump = document(&world.objects, &format!("{BASE}resourcedump.xml")).await;
        let packages = dump.entries.iter().map(|package| &package.metadata);
        let oldest = packages.map(|told| told.at.unwrap().instant()).min().unwrap();
        let changes = document(&world.objects, &format!("{BASE}changelist.xml")).await;
        match dumps.last_mut() {
            Some((last, seen)) if *last == oldest => *seen = world.now(),
            _ => dumps.push((oldest, world.now())),
        }
        // A reader begins with a dump just before another one is in its place, and may use it for two days.
        let is_used = |(_, seen): &&(Timestamp, Timestamp)| {
            world.now().duration_since(*seen) < jiff::SignedDuration::from_hours(71)
        };
        for (oldest, _) in dumps.iter().filter(is_used) {
            assert!(changes.header.from.unwrap().instant() <= *oldest, "day {day}");
        }
    }
    assert!(dumps.len() > 2, "{dumps:?}");
}

#[tokio::test]
async fn a_dump_is_made_and_given_up_when_the_operator_says_so() {
    let mut world = World::with(9, packed()).await;
    world.publish().await;
    assert!(packages(&world).await.is_empty());
    world.publication.dumps = true;
    assert!(world.publish().await.packages > 0);
    assert_eq!(held(&world.objects).await, world.stored().await);

    world.publication.dumps = false;
    world.publish().await;
    let capabilities = document(&world.objects, &format!("{BASE}capabilitylist.xml")).await;
    assert_eq!(capabilities.entries.len(), 2);
    assert!(!packages(&world).await.is_empty(), "readers may be at it");

    world.publication.dumps = true;
    world.publish().await;
    world.passes(49);
    world.publish().await;
    assert_eq!(held(&world.objects).await, world.stored().await, "it was taken up again, and stays");

    world.publication.dumps = false;
    world.publish().await;
    world.passes(49);
    world.publish().await;
    assert!(packages(&world).await.is_empty());
    assert!(world.files().await.iter().all(|(path, _)| !path.starts_with("resourcedump")));
}

#[tokio::test]
async fn damaged_bytes_are_in_no_package_and_taken_later() {
    let world = with_dumps(5, Policy { small: 0, ..packed() }).await;
    world.damage("body 2").await;
    let mut world = world;
    world.publication.with_bytes = false;
    let done = world.publish().await;
    assert_eq!(done.damaged, 1);
    assert_eq!(held(&world.objects).await.len(), 4);
    world.repair("body 2").await;
    for number in [3, 4] {
        world.put(&format!("{number:03}"), "new").await;
    }
    world.publish().await;
    assert_eq!(held(&world.objects).await, world.stored().await);
}

#[tokio::test]
async fn a_dump_killed_after_any_write_is_whole_at_each_point() {
    for writes in 0.. {
        let failing = Failing::new();
        let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
        let policy = Policy { dump_changed_percent: 0, edition_pause: Duration::ZERO, ..packed() };
        let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, policy).await;
        world.publication.dumps = true;
        for number in 0..12 {
            world.put(&format!("{number:03}"), &format!("body {number}")).await;
        }
        let mut kills = 0;
        for round in 0..3 {
            failing.left.store(writes, Ordering::Relaxed);
            let is_killed = world.try_publish().await.is_err();
            kills += usize::from(is_killed);
            if round > 0 {
                // The present dump, the old one or the new one, is whole.
                held(&world.objects).await;
            }
            failing.left.store(i64::MAX, Ordering::Relaxed);
            world.publish().await;
            assert_eq!(held(&world.objects).await, world.stored().await, "after {writes}, round {round}");
            let mut fresh = Follower::new(&world.objects);
            fresh.follow().await;
            assert_eq!(fresh.held, world.stored().await, "after {writes}, round {round}");
            world.put(&format!("{:03}", round * 5), &format!("round {round}")).await;
            world.delete(&format!("{:03}", round * 5 + 1)).await;
        }
        if kills == 0 {
            assert!(writes > 15, "{writes}");
            return;
        }
    }
}
