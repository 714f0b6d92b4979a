//! Readers beside a publisher.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::ObjectStore;
use publish::Policy;

use crate::reader::{Follower, document};
use crate::world::{BASE, World, small};

/// Readers at a time.
const READERS: usize = 8;
/// Publications beside them.
const PUBLICATIONS: usize = 55;
/// Versions that each brings.
const VERSIONS: usize = 7;
/// New Resource Lists and closed Change Lists in that time, at least.
const EDITIONS: usize = 50;
const CLOSINGS: usize = 500;
/// Readers of each task that are kept to the end.
const KEPT: usize = 10;

/// Begins anew in a loop. A reader that met a mix of two states would not hold what is stored at the end.
async fn read_on(objects: Arc<dyn ObjectStore>, stop: Arc<AtomicBool>) -> (usize, Vec<Follower>) {
    let mut kept = vec![Follower::new(&objects)];
    let mut walks = 0;
    while !stop.load(Ordering::Relaxed) {
        kept[0].follow_between().await;
        let mut fresh = Follower::new(&objects);
        fresh.follow_between().await;
        walks += 2;
        if kept.len() == KEPT {
            kept.remove(1);
        }
        kept.push(fresh);
        tokio::task::yield_now().await;
    }
    (walks, kept)
}

/// Every document and file that a reader's documents name is there: a missing one panics in the reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acc_5_readers_beside_publications_find_all_that_is_named_and_no_mix() {
    // Each change closes a Change List.
    let mut world = World::with(20, Policy { most_entries: 1, ..small() }).await;
    world.publish().await;
    let stop = Arc::<AtomicBool>::default();
    let readers: Vec<_> =
        (0..READERS).map(|_| tokio::spawn(read_on(Arc::clone(&world.objects), Arc::clone(&stop)))).collect();
    let mut editions = HashSet::new();
    for round in 0..PUBLICATIONS {
        for step in 0..VERSIONS {
            world.put(&format!("{:03}", (round * 7 + step * 13) % 20), &format!("{step} in {round}")).await;
        }
        world.delete(&format!("{:03}", round % 20)).await;
        world.put(&format!("new-{round}"), "new").await;
        if round > 0 {
            world.delete(&format!("new-{}", round - 1)).await;
        }
        world.publish().await;
        let list = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
        editions.insert(list.header.at);
    }
    let index = document(&world.objects, &format!("{BASE}changelist.xml")).await;
    let closings = index.entries.iter().filter(|list| list.metadata.until.is_some()).count();
    assert!(editions.len() >= EDITIONS && closings >= CLOSINGS, "{} and {closings}", editions.len());
    stop.store(true, Ordering::Relaxed);
    let stored = world.stored().await;
    let mut walks = 0;
    for reader in readers {
        let (count, kept) = reader.await.unwrap();
        walks += count;
        for mut follower in kept {
            follower.follow().await;
            assert_eq!(follower.held, stored);
        }
    }
    assert!(walks >= READERS * 4, "{walks}");
}
