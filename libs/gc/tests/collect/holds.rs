//! Objects that are kept although no record points to them.

use jiff::{SignedDuration, Timestamp};
use model::{ChangeEvent, ChangeLogEntry, Clock as _, JobId, PackageRecord, PackageState, Phase, RunId};
use store::Store;

use crate::suite::package;
use crate::world::{MONTH, WEEK, World, id, listing, stored, uri};

pub(crate) async fn what_was_stored_within_the_retention_time_stays(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let object = world.object("an orphan").await;
    let pack = world.pack(&held.source, &["an orphan in a pack"]).await.remove(0);
    let (_, package) = world.package(&held.source, "an orphan beside packages").await;
    held.close().await;
    let report = world.try_collect(false, true, MONTH + WEEK).await.unwrap();
    let young = [report.bitstreams, report.packs, report.packages].map(|kind| kind.young.objects);
    assert_eq!((young, report.removed().objects), ([1, 1, 1], 0), "{report:?}");
    for location in [&object, &pack, &package] {
        assert!(world.has(location).await, "{location:?}");
    }
    assert_eq!(world.collect().await.removed().objects, 3);
}

pub(crate) async fn a_run_that_is_not_finished_holds_back_what_was_stored_since_it_began(store: Store) {
    let world = World::new(store);
    let one = world.source("one").await;
    let two = world.source("two").await;
    let before = Timestamp::now();
    one.run(Phase::Dispatching, before).await;
    let object = world.object("fetched, and not settled yet").await;
    let own = world.pack(&one.source, &["packed, and not settled yet"]).await.remove(0);
    let of_another = world.pack(&two.source, &["an orphan of a Source at rest"]).await.remove(0);
    two.close().await;
    for keep_for in [WEEK, SignedDuration::ZERO] {
        let report = world.try_collect(false, true, keep_for).await.unwrap();
        assert!(world.has(&object).await && world.has(&own).await, "{report:?}");
        assert!(!world.has(&of_another).await, "{report:?}");
        let held_back: Vec<_> = report.held_back.iter().map(|held| (&held.source, held.since)).collect();
        assert_eq!(held_back, [(&one.source, before)]);
    }
    one.run(Phase::Finished, before).await;
    one.close().await;
    assert_eq!(world.collect().await.removed().objects, 2);
}

pub(crate) async fn a_job_of_an_earlier_run_that_is_waited_for_holds_back_as_well(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let (_, lies) = world.package(&held.source, "a tar").await;
    let state = PackageState::Stored { stored: stored(&lies, "a tar") };
    let job = Some(JobId::fresh());
    let opening = PackageRecord { job, ..package(1, state) };
    held.commit(|batch| batch.put_package("http://e.org/1.tar", &opening)).await;
    let own = world.pack(&held.source, &["unpacked, and not settled yet"]).await.remove(0);
    let report = world.try_collect(false, true, SignedDuration::ZERO).await.unwrap();
    assert!(world.has(&own).await && world.has(&lies).await, "{report:?}");
    assert_eq!(report.held_back.len(), 1);
    let over = PackageRecord { job: None, ..opening };
    held.commit(|batch| batch.put_package("http://e.org/1.tar", &over)).await;
    held.close().await;
    assert_eq!(world.collect().await.packs.removed.objects, 1);
    assert!(world.has(&lies).await);
}

pub(crate) async fn what_was_let_go_of_lately_stays_for_its_readers(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let lately = world.clock.now() - WEEK / 2;
    let long_ago = lately - WEEK;
    // So many that the first recent one must be searched for.
    let old: Vec<_> = (0..40).map(|n| change(&format!("{n}"), long_ago, None)).collect();
    held.commit(|batch| old.iter().for_each(|change| batch.append_change(change))).await;
    let past = world.object("let go of long ago").await;
    let object = world.object("let go of lately").await;
    let pack = world.pack(&held.source, &["let go of lately, in a pack"]).await.remove(0);
    let (_, package) = world.package(&held.source, "let go of lately, in a package").await;
    let changes = [
        change("past", long_ago, Some(&past)),
        change("a", lately, Some(&object)),
        change("b", lately, Some(&pack)),
        change("c", lately, Some(&package)),
    ];
    held.commit(|batch| changes.iter().for_each(|change| batch.append_change(change))).await;
    held.close().await;
    let report = world.collect().await;
    assert!(!world.has(&past).await, "{report:?}");
    for location in [&object, &pack, &package] {
        assert!(world.has(location).await, "{location:?}: {report:?}");
    }
    assert_eq!((report.packs.young.objects, report.packages.young.objects), (1, 1), "{report:?}");
    world.clock.advance(WEEK);
    assert_eq!(world.collect().await.removed().objects, 3);
}

fn change(name: &str, at: Timestamp, freed: Option<&model::Location>) -> ChangeLogEntry {
    let event = ChangeEvent::Deleted { absent: false };
    let change = ChangeLogEntry::new(uri(name), event, at, RunId::fresh(), listing().document);
    ChangeLogEntry { freed: freed.cloned(), ..change }
}

pub(crate) async fn a_source_without_a_catalog_is_left_alone(store: Store) {
    let world = World::new(store);
    world.source("one").await.close().await;
    let strange = world.pack(&id("two"), &["whose?"]).await.remove(0);
    let report = world.collect().await;
    assert_eq!(report.strangers, [id("two")]);
    assert!(world.has(&strange).await);
}
