//! What a server finds damaged is told by the next publication of documents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use object_store::ObjectStore;
use publish::{PartSet, Place, Policy, Takedown};
use resourcesync::Change;

use crate::deletions::told;
use crate::killed::Failing;
use crate::reader::Follower;
use crate::world::{World, small, uri};

/// A publication of documents with a set by rule, and a reader of each.
async fn documents(resources: usize) -> (World, [Follower; 2]) {
    // Readers of before read changes, and not the next Resource List.
    let mut world = World::with(resources, Policy { small: 3, ..small() }).await;
    world.publication.with_bytes = false;
    world.publication.sets = vec![PartSet::new("low=/00[0-4]".parse().unwrap()).unwrap()];
    world.publish().await;
    let mut readers = [0, 1].map(|set| Follower::of_set(&world.objects, set));
    for reader in &mut readers {
        reader.follow().await;
    }
    (world, readers)
}

/// What a reader is to hold when these are damaged.
async fn without(world: &World, set: usize, damaged: &[&str]) -> BTreeMap<String, String> {
    let mut held = world.stored().await;
    held.retain(|uri, _| set == 0 || uri.as_str() < "http://e.org/005");
    for name in damaged {
        held.remove(uri(name).as_str());
    }
    held
}

/// Readers of before, and those that begin now, hold all but these.
async fn readers_hold(world: &World, readers: &mut [Follower; 2], damaged: &[&str]) {
    for (set, reader) in readers.iter_mut().enumerate() {
        let expected = without(world, set, damaged).await;
        reader.follow().await;
        assert_eq!(reader.held, expected, "set {set}");
        let mut fresh = Follower::of_set(&world.objects, set);
        fresh.follow().await;
        assert_eq!(fresh.held, expected, "set {set}, from now on");
    }
}

async fn notes(world: &World) -> usize {
    world.own_files().await.iter().filter(|path| path.starts_with(".thresher/damaged/")).count()
}

/// When a list is complete, the clock of the process tells: it stands still here.
#[tokio::test(start_paused = true)]
async fn noted_damage_is_told_as_deleted_once_and_as_created_when_the_bytes_are_back() {
    let (mut world, mut readers) = documents(8).await;
    for name in ["001", "006"] {
        world.damage(&format!("body {}", &name[2..])).await;
        // Several readers meet it.
        for _ in 0..3 {
            assert!(world.publication.note_damage(&uri(name)).await.unwrap());
        }
    }
    assert_eq!(notes(&world).await, 2, "one of each");
    let done = world.publish().await;
    assert_eq!((done.changes, done.damaged), (2, 2));
    readers_hold(&world, &mut readers, &["001", "006"]).await;
    assert!(told(&world).await.iter().all(|entry| entry.metadata.change == Some(Change::Deleted)));
    assert_eq!(notes(&world).await, 0);

    // It is not read again at once, and another note does not matter.
    world.publication.note_damage(&uri("001")).await.unwrap();
    let idle = world.publish().await;
    assert_eq!((idle.changes, idle.damaged, idle.documents), (0, 0, 0));

    // An hour later it is.
    world.passes(1);
    let tried = world.publish().await;
    assert_eq!((tried.changes, tried.damaged, tried.documents), (0, 2, 0));
    world.repair("body 1").await;
    world.passes(1);
    let done = world.publish().await;
    assert_eq!((done.changes, done.damaged), (1, 1));
    assert_eq!(told(&world).await.last().unwrap().metadata.change, Some(Change::Created));
    readers_hold(&world, &mut readers, &["006"]).await;

    // A new version is there at once.
    world.put("006", "new").await;
    assert_eq!(world.publish().await.changes, 1);
    assert_eq!(told(&world).await.last().unwrap().metadata.change, Some(Change::Created));
    readers_hold(&world, &mut readers, &[]).await;
}

#[tokio::test]
async fn a_note_of_what_can_be_read_or_is_gone_or_is_withdrawn_tells_nothing() {
    let (mut world, mut readers) = documents(5).await;
    world.delete("003").await;
    world.damage("body 2").await;
    world.publication.takedown = Takedown::parse(uri("002").as_str()).unwrap();
    for name in ["001", "002", "003", "never-there"] {
        world.publication.note_damage(&uri(name)).await.unwrap();
    }
    let done = world.publish().await;
    assert_eq!((done.changes, done.damaged), (2, 0), "the deletion and the withdrawal");
    readers_hold(&world, &mut readers, &["002"]).await;
    assert_eq!(notes(&world).await, 0);
}

#[tokio::test]
async fn a_version_that_was_not_told_yet_comes_before_its_damage() {
    let (mut world, mut readers) = documents(5).await;
    world.put("001", "damaged at once").await;
    world.damage("damaged at once").await;
    world.publication.note_damage(&uri("001")).await.unwrap();
    assert_eq!(world.publish().await.changes, 2);
    let kinds: Vec<_> = told(&world).await.into_iter().map(|entry| entry.metadata.change).collect();
    assert_eq!(kinds, [Some(Change::Updated), Some(Change::Deleted)]);
    readers_hold(&world, &mut readers, &["001"]).await;
}

#[tokio::test]
async fn at_most_a_thousand_notes_wait() {
    let (world, _) = documents(3).await;
    let mut taken = 0;
    for number in 0..1_010 {
        taken += usize::from(world.publication.note_damage(&uri(&number.to_string())).await.unwrap());
    }
    assert_eq!((taken, notes(&world).await), (1_000, 1_000));
    world.publish().await;
    assert_eq!(notes(&world).await, 0);
}

/// When a list is complete, the clock of the process tells: it stands still here.
#[tokio::test(start_paused = true)]
async fn damage_is_told_after_a_kill_at_any_write() {
    let mut kills = 0;
    for writes in 0..12 {
        let failing = Failing::new();
        let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
        let place = Place::bucket("failing", Arc::clone(&objects));
        let policy = Policy { retry_damaged: Duration::ZERO, ..small() };
        let mut world = World::at(place, objects, policy).await;
        world.publication.with_bytes = false;
        for number in 0..5 {
            world.put(&format!("{number:03}"), &format!("body {number}")).await;
        }
        world.publish().await;
        let mut reader = Follower::of_set(&world.objects, 0);
        reader.follow().await;
        for is_damaged in [true, false] {
            if is_damaged {
                world.damage("body 1").await;
                world.publication.note_damage(&uri("001")).await.unwrap();
            } else {
                world.repair("body 1").await;
            }
            failing.left.store(writes, Ordering::Relaxed);
            if world.try_publish().await.is_err() {
                kills += 1;
                reader.follow_between().await;
            }
            failing.left.store(i64::MAX, Ordering::Relaxed);
            world.publish().await;
            let expected = without(&world, 0, if is_damaged { &["001"] } else { &[] }).await;
            reader.follow().await;
            assert_eq!(reader.held, expected, "{writes}, damaged: {is_damaged}");
        }
    }
    assert!(kills > 8, "{kills}");
}
