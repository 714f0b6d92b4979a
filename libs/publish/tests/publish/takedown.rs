//! Resources that are withdrawn.

use std::io::{Cursor, Read as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use object_store::ObjectStore;
use publish::{Place, Policy, PublishedPath, Seen, Takedown};
use zip::ZipArchive;

use crate::dumps::{held, with_dumps};
use crate::killed::Failing;
use crate::meanwhile::Halting;
use crate::reader::Follower;
use crate::world::{World, small, uri};

fn withdrawn(names: &[&str]) -> Takedown {
    let lines: Vec<String> = names.iter().map(|name| uri(name).to_string()).collect();
    Takedown::parse(&lines.join("\n")).unwrap()
}

/// Whether any file, or member of a package, has this body. The publisher's own segments count, too.
pub(crate) async fn has_bytes(world: &World, body: &str) -> bool {
    let mut found = false;
    for (path, bytes) in world.all_files().await {
        found |= &bytes[..] == body.as_bytes();
        if !path.ends_with(".zip") {
            continue;
        }
        let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
        for at in 0..zip.len() {
            let mut member = Vec::new();
            zip.by_index(at).unwrap().read_to_end(&mut member).unwrap();
            found |= member == body.as_bytes();
        }
    }
    found
}

#[tokio::test]
async fn what_is_withdrawn_is_told_as_deleted_and_its_bytes_are_nowhere() {
    let policy = Policy { package_entries: 4, dumped_list_age: Duration::ZERO, ..small() };
    let mut world = with_dumps(20, policy).await;
    world.publish().await;
    world.put("003", "a new version").await;
    world.put("030", "told in a change").await;
    world.publish().await;
    // The next changes are in an open list, so their bytes are in a segment.
    world.publication.policy.dumped_list_age = Duration::from_secs(36_000);
    world.put("004", "in a segment").await;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);

    world.publication.takedown = withdrawn(&["003", "004", "030", "never-there"]);
    let done = world.publish().await;
    assert_eq!(done.changes, 3);
    for body in ["a new version", "told in a change", "in a segment", "body 3"] {
        assert!(!has_bytes(&world, body).await, "{body}");
    }
    let mut expected = world.stored().await;
    for name in ["003", "004", "030"] {
        expected.remove(&uri(name).to_string());
    }
    reader.follow().await;
    assert_eq!(reader.held, expected);
    assert_eq!(held(&world.objects).await, expected);
    let path = PublishedPath::of(&uri("003"));
    assert!(world.files().await.iter().all(|(file, _)| file != path.as_str()));

    // Later versions of it are not told, and the list stays what it is.
    world.put("003", "a later version").await;
    world.delete("004").await;
    assert_eq!(world.publish().await.changes, 0);
    assert!(!has_bytes(&world, "a later version").await);
    let idle = world.publish().await;
    assert_eq!((idle.documents, idle.changes), (0, 0));

    world.publication.takedown = withdrawn(&["030"]);
    assert_eq!(world.publish().await.changes, 1, "one is published again, and one was deleted meanwhile");
    let mut expected = world.stored().await;
    expected.remove(&uri("030").to_string());
    reader.follow().await;
    assert_eq!(reader.held, expected);
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, expected);
}

#[tokio::test]
async fn what_other_sources_have_costs_nothing_and_is_remembered_when_it_comes() {
    let policy = Policy { package_entries: 4, dumped_list_age: Duration::ZERO, ..small() };
    let mut world = with_dumps(9, policy).await;
    world.publish().await;
    world.put("003", "a new version").await;
    world.publish().await;
    world.publish().await;
    let before = world.files().await;
    world.publication.takedown = withdrawn(&["of-another", "of-a-third"]);
    let done = world.publish().await;
    assert_eq!((done.changes, done.documents, done.packages, done.removed), (0, 0, 0, 0));
    assert_eq!(world.files().await, before);
    let own = world.all_files().await;
    assert!(own.iter().all(|(_, bytes)| !String::from_utf8_lossy(bytes).contains("of-another")));

    // This Source lists it, too: it is withdrawn from the beginning, and published when the list does not have it.
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    let expected = reader.held.clone();
    world.put("of-another", "it is here").await;
    let done = world.publish().await;
    assert_eq!((done.changes, done.packages, done.removed), (0, 0, 0));
    assert!(!has_bytes(&world, "it is here").await);
    reader.follow().await;
    assert_eq!(reader.held, expected);
    world.publication.takedown = withdrawn(&["of-a-third"]);
    assert_eq!(world.publish().await.changes, 1);
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);
}

#[tokio::test]
async fn what_was_deleted_before_it_was_withdrawn_leaves_the_packages() {
    let policy = Policy { package_entries: 4, dumped_list_age: Duration::ZERO, ..small() };
    let mut world = with_dumps(9, policy).await;
    world.publish().await;
    world.put("003", "a new version").await;
    world.publish().await;
    world.delete("003").await;
    world.publish().await;
    assert!(has_bytes(&world, "a new version").await);
    world.publication.takedown = withdrawn(&["003"]);
    assert_eq!(world.publish().await.changes, 0);
    for body in ["body 3", "a new version"] {
        assert!(!has_bytes(&world, body).await, "{body}");
    }
}

#[tokio::test]
async fn packages_with_it_are_gone_before_others_are_made() {
    let policy = Policy { package_entries: 4, dumped_list_age: Duration::ZERO, ..small() };
    let mut world = with_dumps(20, policy).await;
    world.publish().await;
    world.put("003", "a new version").await;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    world.publication.takedown = withdrawn(&["003", "007"]);
    let (records, mut halts, go_on) = Halting::before(0, &world);
    let mut see = |_: Seen<'_>| {};
    let mut expected = world.stored().await;
    for name in ["003", "007"] {
        expected.remove(uri(name).as_str());
    }
    let meanwhile = async {
        halts.recv().await.unwrap();
        for body in ["body 3", "a new version", "body 7"] {
            assert!(!has_bytes(&world, body).await, "{body}");
        }
        assert!(has_bytes(&world, "body 15").await, "other packages stay");
        reader.follow().await;
        assert_eq!(reader.held, expected);
        go_on.add_permits(1);
    };
    let (done, ()) = tokio::join!(world.publication.run(&records, world.now(), &mut see), meanwhile);
    done.unwrap();
    assert_eq!(held(&world.objects).await, expected);
}

#[tokio::test]
async fn a_package_that_was_removed_is_in_no_later_dump() {
    let mut world = with_dumps(20, Policy { package_entries: 4, ..small() }).await;
    world.publish().await;
    world.publication.takedown = withdrawn(&["003"]);
    let (records, mut halts, _) = Halting::before(0, &world);
    let mut see = |_: Seen<'_>| {};
    // The run is killed before it makes another one, and what was withdrawn is published again.
    tokio::select! {
        _ = world.publication.run(&records, world.now(), &mut see) => panic!("it halts"),
        _ = halts.recv() => {}
    }
    world.publication.takedown = withdrawn(&[]);
    world.publish().await;
    assert_eq!(held(&world.objects).await, world.stored().await);
}

#[tokio::test]
async fn what_was_deleted_and_withdrawn_between_two_runs_is_told_as_deleted() {
    let mut world = World::with(4, small()).await;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    world.delete("001").await;
    world.publication.takedown = withdrawn(&["001"]);
    assert_eq!(world.publish().await.changes, 1);
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);
    assert_eq!(world.publish().await.changes, 0, "once");
}

#[tokio::test]
async fn what_is_withdrawn_when_the_catalog_was_made_anew_leaves_no_bytes() {
    let policy = Policy { package_entries: 4, ..small() };
    let world = with_dumps(9, policy).await;
    world.publish().await;
    assert!(has_bytes(&world, "body 1").await);
    let (place, objects) = (world.publication.place.clone(), Arc::clone(&world.objects));
    let mut anew = World::at(place, objects, policy).await;
    anew.clock = world.clock;
    anew.publication.dumps = true;
    for name in ["001", "002"] {
        anew.put(name, &format!("anew {name}")).await;
    }
    anew.publication.takedown = withdrawn(&["001"]);
    anew.publish().await;
    for body in ["body 1", "anew 001"] {
        assert!(!has_bytes(&anew, body).await, "{body}");
    }
}

#[tokio::test]
async fn what_only_a_catalog_that_was_made_anew_has_comes_back_when_the_list_has_it_no_more() {
    let mut world = World::with(3, small()).await;
    world.publication.takedown = withdrawn(&["of-the-new-one"]);
    world.publish().await;
    let (place, objects) = (world.publication.place.clone(), Arc::clone(&world.objects));
    let mut anew = World::at(place, objects, small()).await;
    anew.clock = world.clock;
    for name in ["001", "of-the-new-one"] {
        anew.put(name, "anew").await;
    }
    anew.publication.takedown = withdrawn(&["of-the-new-one"]);
    anew.publish().await;
    let mut reader = Follower::new(&anew.objects);
    reader.follow().await;
    assert_eq!(reader.held.len(), 1);
    anew.publication.takedown = withdrawn(&[]);
    assert_eq!(anew.publish().await.changes, 1);
    reader.follow().await;
    assert_eq!(reader.held, anew.stored().await);
}

#[tokio::test]
async fn what_is_withdrawn_from_the_beginning_is_never_named() {
    let mut world = World::with(6, small()).await;
    world.publication.takedown = withdrawn(&["002"]);
    assert_eq!(world.publish().await.changes, 0);
    for (path, bytes) in world.files().await {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("http://e.org/002") && !text.contains("body 2"), "{path}");
    }
}

#[tokio::test]
async fn a_withdrawal_killed_after_any_write_is_completed() {
    for writes in 0.. {
        let failing = Failing::new();
        let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
        let policy = Policy { package_entries: 4, dumped_list_age: Duration::ZERO, ..small() };
        let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, policy).await;
        world.publication.dumps = true;
        for number in 0..9 {
            world.put(&format!("{number:03}"), &format!("body {number}")).await;
        }
        world.publish().await;
        world.put("001", "changed").await;
        world.publish().await;
        let mut reader = Follower::new(&world.objects);
        reader.follow().await;
        world.publication.takedown = withdrawn(&["001", "005"]);
        failing.left.store(writes, Ordering::Relaxed);
        let is_killed = world.try_publish().await.is_err();
        failing.left.store(i64::MAX, Ordering::Relaxed);
        reader.follow_between().await;
        world.publish().await;
        for body in ["changed", "body 5", "body 1"] {
            assert!(!has_bytes(&world, body).await, "{body} after {writes}");
        }
        let mut expected = world.stored().await;
        for name in ["001", "005"] {
            expected.remove(&uri(name).to_string());
        }
        reader.follow().await;
        assert_eq!(reader.held, expected, "after {writes}");
        assert_eq!(held(&world.objects).await, expected, "after {writes}");
        if !is_killed {
            assert!(writes > 5, "{writes}");
            return;
        }
    }
}
