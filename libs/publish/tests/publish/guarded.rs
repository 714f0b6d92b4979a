//! A bucket that several processes may write: one that was suspended while another wrote does no harm.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};
use publish::{CatalogRecords, Place, Policy, Publication, PublishError};
use testkit::gated::GatedObjects;

use crate::change_dumps::packed;
use crate::killed::Failing;
use crate::reader::Follower;
use crate::world::{World, small};

#[tokio::test]
async fn a_publisher_of_several_that_another_one_has_overtaken_fails_and_the_state_is_that_of_the_other() {
    overtaken(Place::shared).await;
}

#[tokio::test]
async fn so_does_one_that_was_to_be_the_only_one() {
    overtaken(Place::of_one_writer).await;
}

async fn overtaken(of: fn(Place) -> Place) {
    let (objects, gate) = GatedObjects::closed();
    let objects: Arc<dyn ObjectStore> = objects;
    let place = || of(Place::bucket("memory", Arc::clone(&objects)));
    let mut world = World::at(place(), Arc::clone(&objects), small()).await;
    for number in 0..8 {
        world.put(&format!("{number:03}"), &format!("body {number}")).await;
    }
    {
        let mut suspended = pin!(world.try_publish());
        tokio::select! {
            _ = &mut suspended => panic!("its first write waits at the gate"),
            () = gate.have_come(1) => {}
        }
        gate.open(1_000);
        let other = Publication { place: place(), ..world.publication.clone() };
        let records = CatalogRecords::new(&world.catalog, &world.store);
        other.run(&records, world.now(), &mut |_| {}).await.unwrap();
        assert!(matches!(suspended.await, Err(PublishError::Busy(_))), "it was overtaken");
    }
    // It reads what the other has written, and continues that.
    let before = world.all_files().await;
    assert_eq!(world.publish().await.documents, 0);
    assert_eq!(world.all_files().await, before);
    world.put("new", "body").await;
    assert_eq!(world.publish().await.changes, 1);
}

/// A publication in a bucket that several may write, with eight resources that are not published yet.
async fn shared(failing: &Arc<Failing>) -> World {
    let objects: Arc<dyn ObjectStore> = Arc::clone(failing) as _;
    let place = Place::bucket("memory", Arc::clone(&objects)).shared();
    let mut world = World::at(place, objects, Policy { changed_percent: 1_000_000, ..small() }).await;
    for number in 0..8 {
        world.put(&format!("{number:03}"), &format!("body {number}")).await;
    }
    world
}

/// The PUT of a Change List comes late: when another publisher has told so many changes.
async fn late_put(world: &mut World, failing: &Failing, changes: usize) {
    late_put_into("changelist/", world, failing, changes).await;
}

/// The same of the first PUT into a folder.
async fn late_put_into(folder: &'static str, world: &mut World, failing: &Failing, changes: usize) {
    let first = world.publication.clone();
    let records = CatalogRecords::new(&world.catalog, &world.store);
    let (now, mut see) = (world.now(), |_: publish::Seen<'_>| {});
    let mut suspended = pin!(first.run(&records, now, &mut see));
    failing.late.hold(folder, suspended.as_mut()).await;
    for number in 0..changes {
        world.put(&format!("{number:03}"), "by the other").await;
    }
    world.publication.place = Place::bucket("memory", Arc::clone(&world.objects)).shared();
    world.publish().await;
    failing.late.release();
    assert!(matches!(suspended.await, Err(PublishError::Busy(_))), "it was overtaken");
}

#[tokio::test]
async fn a_change_list_that_is_written_late_takes_no_changes_of_another_publisher_along() {
    // The other one adds to the list, or closes it.
    for changes in [1, 2, 7] {
        let failing = Failing::new();
        let mut world = shared(&failing).await;
        world.publish().await;
        let mut reader = Follower::new(&world.objects);
        reader.follow().await;
        for round in 0..3 {
            world.put("007", &format!("round {round}")).await;
            late_put(&mut world, &failing, changes).await;
            reader.follow().await;
            assert_eq!(reader.held, world.stored().await, "{changes} changes, round {round}");
            world.put("006", &format!("round {round}")).await;
            assert_eq!(world.publish().await.changes, 1);
            reader.follow().await;
            assert_eq!(reader.held, world.stored().await, "{changes} changes, round {round}");
        }
        let mut fresh = Follower::new(&world.objects);
        fresh.follow().await;
        assert_eq!(fresh.held, world.stored().await);
    }
}

#[tokio::test]
async fn nor_does_the_first_list_of_a_publication() {
    let failing = Failing::new();
    let mut world = shared(&failing).await;
    late_put(&mut world, &failing, 3).await;
    world.put("new", "body").await;
    assert_eq!(world.publish().await.changes, 1);
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, world.stored().await);
}

#[tokio::test]
async fn a_segment_that_is_written_late_takes_no_bytes_out_of_a_change_dump() {
    let failing = Failing::new();
    let mut world = shared(&failing).await;
    world.publication.dumps = true;
    world.publish().await;
    world.put("007", "by the first").await;
    late_put_into(".thresher/changes/", &mut world, &failing, 2).await;
    // The list is closed, and its package made of the segments.
    world.passes(2);
    assert_eq!(world.publish().await.change_packages, 1);
    let (all, _) = packed(&world.objects).await;
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|change| change.found == change.declared), "{all:?}");
    // What came late, and nothing names, is found and removed.
    for hours in [25, 49] {
        world.passes(hours);
        world.publish().await;
    }
    let own = world.own_files().await;
    assert!(own.iter().all(|path| !path.contains("/changes/")), "{own:?}");
}

#[tokio::test]
async fn a_change_list_ends_before_it_is_large_only_where_it_is_written_from_memory() {
    for (is_shared, lists) in [(true, 3), (false, 1)] {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let place = Place::bucket("memory", Arc::clone(&objects));
        let place = if is_shared { place.shared() } else { place };
        let policy =
            Policy { most_entries: 1_000, guarded_list_bytes: 1, changed_percent: 1_000_000, ..small() };
        let mut world = World::at(place, objects, policy).await;
        world.put("000", "body").await;
        world.publish().await;
        for number in 1..4 {
            world.put(&format!("{number:03}"), "body").await;
            world.publish().await;
        }
        let files = world.files().await;
        let found = files.iter().filter(|(path, _)| path.starts_with("changelist/")).count();
        assert_eq!(found, lists, "shared: {is_shared}");
    }
}

#[tokio::test]
async fn hubs_are_told_nothing_of_a_list_that_is_shorter_than_it_was_published() {
    let failing = Failing::new();
    let mut world = shared(&failing).await;
    world.publish().await;
    let since = world.publication.published_until().await.unwrap();
    world.put("001", "one").await;
    world.publish().await;
    let mut files = world.files().await.into_iter();
    let (path, before) = files.rfind(|(path, _)| path.starts_with("changelist/")).unwrap();
    world.put("002", "two").await;
    world.publish().await;
    let told = async |most| world.publication.changes_after(since, most).await;
    assert_eq!(told(5).await.unwrap().unwrap().entries.len(), 2);
    assert_eq!(told(1).await.unwrap().unwrap().entries.len(), 1, "there are more, which is no fault");
    world.objects.put(&Key::from(path), before.into()).await.unwrap();
    let error = told(5).await.unwrap_err();
    assert!(error.to_string().contains("it has 1 changes of 2"), "{error}");
}

#[tokio::test]
async fn a_bucket_that_ignores_conditions_is_known_as_one() {
    let objects = Failing::new();
    let place = Place::bucket("failing", Arc::clone(&objects) as _);
    for _ in 0..2 {
        assert!(place.has_conditional_puts().await);
    }
    objects.ignores_conditions.store(true, Ordering::Relaxed);
    assert!(!place.has_conditional_puts().await);
    let local = tempfile::tempdir().unwrap();
    let local = Place::directory(local.path(), objects).unwrap().of_one_writer();
    assert!(!local.is_guarded(), "it has a lock");
}
