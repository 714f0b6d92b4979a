//! Work that only the owner of a Source may do.

use gc::{Options, collect};
use jiff::{SignedDuration, Timestamp};
use model::{Clock, Location, ManualClock, Phase, Subject};
use store::{Key, Store};

use crate::suite::problem;
use crate::world::{Held, WEEK, World, bitstream, uri};

pub(crate) async fn deletions_become_final_when_their_time_has_passed(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let source = held.source.clone();
    let old = world.object("deleted long ago").await;
    let late = world.object("deleted lately").await;
    let now = world.clock.now();
    held.deleted("old", &old, "deleted long ago", now - WEEK * 2).await;
    held.deleted("late", &late, "deleted lately", now - WEEK / 2).await;
    held.close().await;
    let report = world.collect().await;
    assert_eq!((report.tombstones.given_up, report.bitstreams.removed.objects), (1, 1), "{report:?}");
    let record = world.record(&source, "old").await;
    assert_eq!((record.deleted, record.bitstream, record.collected), (None, None, Some(now)));
    assert!(!world.has(&old).await && world.has(&late).await);
    assert!(world.record(&source, "late").await.deleted.is_some());
}

pub(crate) async fn only_the_owner_makes_deletions_final(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let source = held.source.clone();
    let old = world.object("deleted long ago").await;
    held.deleted("old", &old, "deleted long ago", world.clock.now() - WEEK * 2).await;
    // Without the option.
    let report = world.try_collect(false, false, WEEK).await.unwrap();
    assert_eq!((report.tombstones.left, report.tombstones.given_up), (1, 0), "{report:?}");
    // A run is under way, and its owner must not be fenced out.
    held.run(Phase::Dispatching, world.clock.now()).await;
    let report = world.collect().await;
    assert_eq!((report.tombstones.left, report.tombstones.given_up), (1, 0), "{report:?}");
    held.holds("more", &old, "deleted long ago").await;
    assert!(world.has(&old).await);
    assert!(world.record(&source, "old").await.deleted.is_some());
    held.close().await;
}

/// A pack of thirty members, of which every tenth is stored; one of those is deleted.
async fn mostly_dead(world: &World, held: &Held) -> (Vec<String>, Vec<Location>) {
    let contents: Vec<String> = (0..30).map(|n| format!("{n}").repeat(400)).collect();
    let texts: Vec<&str> = contents.iter().map(String::as_str).collect();
    let members = world.pack(&held.source, &texts).await;
    for n in [0, 10] {
        held.holds(&format!("{n}"), &members[n], texts[n]).await;
    }
    let lately = world.clock.now() - WEEK / 2;
    held.deleted("20", &members[20], texts[20], lately).await;
    (contents, members)
}

pub(crate) async fn a_pack_that_is_mostly_dead_is_rewritten_and_goes_later(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let source = held.source.clone();
    let (contents, members) = mostly_dead(&world, &held).await;
    let healthy = world.pack(&source, &["held", "also held", "dead"]).await;
    held.holds("healthy", &healthy[0], "held").await;
    held.holds("healthy too", &healthy[1], "also held").await;
    held.close().await;
    let unowned = world.try_collect(false, false, WEEK).await.unwrap();
    assert_eq!((unowned.rewritten.left, unowned.rewritten.packs), (1, 0), "{unowned:?}");
    let report = world.collect().await;
    assert_eq!((report.rewritten.packs, report.rewritten.bitstreams), (1, 3), "{report:?}");
    assert!(world.has(&members[0]).await, "somebody may be reading it");
    let mut packs = std::collections::BTreeSet::new();
    for n in [0, 10, 20] {
        let record = world.record(&source, &format!("{n}")).await;
        let is_deleted = record.deleted.is_some();
        assert_eq!(is_deleted, n == 20);
        let moved = record.bitstream.or(record.deleted).unwrap();
        assert_ne!(Key::of(&moved.location), Key::of(&members[0]));
        assert_eq!(world.store.read_verified(&moved).await.unwrap(), contents[n]);
        packs.insert(Key::of(&moved.location).to_string());
    }
    assert_eq!(packs.len(), 1);
    assert_eq!(world.record(&source, "healthy").await.bitstream.unwrap().location, healthy[0]);

    // It has no references, but its retention is not over.
    world.clock.advance(WEEK - SignedDuration::from_hours(1));
    let report = world.try_collect(false, false, WEEK).await.unwrap();
    assert_eq!((report.packs.young.objects, report.packs.removed.objects), (1, 0), "{report:?}");
    world.clock.advance(SignedDuration::from_hours(2));
    let report = world.try_collect(false, false, WEEK).await.unwrap();
    assert_eq!(report.packs.removed.objects, 1, "{report:?}");
    assert!(!world.has(&members[0]).await);
    for n in [0, 10] {
        let held = world.record(&source, &format!("{n}")).await.bitstream.unwrap();
        assert_eq!(world.store.read_verified(&held).await.unwrap(), contents[n]);
    }
    // The new pack is not sparse, although its members are small.
    assert_eq!(world.try_collect(true, true, WEEK * 9).await.unwrap().rewritten.packs, 0);
}

/// A clock that advances by an hour with each read.
#[derive(Debug)]
struct Hourly(ManualClock);

impl Clock for Hourly {
    fn now(&self) -> Timestamp {
        self.0.advance(SignedDuration::from_hours(1));
        self.0.now()
    }
}

pub(crate) async fn the_time_of_a_rewritten_pack_begins_when_all_of_it_was_moved(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    mostly_dead(&world, &held).await;
    held.close().await;
    let began = world.clock.now();
    let options = Options { keep_for: WEEK, dry_run: false, as_owner: true };
    let clock = Hourly(ManualClock::new(began));
    Box::pin(collect(&world.store, &options, &clock)).await.unwrap();
    let held = Held::open(&world.store, "one").await;
    let noted = held.catalog.rewritten_packs().await.unwrap();
    let [noted] = &noted[..] else { panic!("{noted:?}") };
    assert_eq!(noted.at, clock.0.now(), "nothing was asked for the time after it");
    assert!(noted.at > began + SignedDuration::from_hours(1));
    held.close().await;
}

pub(crate) async fn a_pack_with_a_candidate_is_left_as_it_is(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let (contents, members) = mostly_dead(&world, &held).await;
    let waiting = problem(&members[5], &contents[5]);
    held.commit(|batch| batch.put_problem(&Subject::Resource(uri("5").to_string()), &waiting)).await;
    held.close().await;
    let report = world.collect().await;
    assert_eq!(report.rewritten.packs, 0, "{report:?}");
    let candidate = bitstream(&members[5], &contents[5]);
    assert_eq!(world.store.read_verified(&candidate).await.unwrap(), contents[5]);
}
