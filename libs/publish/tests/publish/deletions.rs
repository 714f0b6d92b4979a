//! What is told of resources that are there no more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use object_store::ObjectStore;
use publish::{Place, Policy, Takedown};
use resourcesync::{Change, Entry, Link, relation};

use crate::killed::Failing;
use crate::reader::{Follower, document};
use crate::world::{BASE, World, small, uri};

/// All changes that are told, oldest first.
pub(crate) async fn told(world: &World) -> Vec<Entry> {
    let index = document(&world.objects, &format!("{BASE}changelist.xml")).await;
    let mut told = Vec::new();
    for list in index.entries {
        told.extend(document(&world.objects, &list.loc).await.entries);
    }
    told
}

/// The links of the entries that tell deletions.
async fn links_of_deletions(world: &World) -> Vec<Vec<Link>> {
    let told = told(world).await.into_iter();
    told.filter(|entry| entry.metadata.change == Some(Change::Deleted)).map(|entry| entry.links).collect()
}

/// A resource that came with the links of two hops.
async fn of_a_chain() -> (World, Link) {
    let mut world = World::new(Policy::default()).await;
    let first = Link { length: Some(7), ..Link::new(relation::VIA, "http://o.test/x") };
    let hop = Link::new(relation::VIA, "http://g.test/resources/http/2/o.test/x");
    world.links = vec![Link::new(relation::LICENSE, "http://o.test/license"), first.clone(), hop];
    world.put("x", "x").await;
    world.links = Vec::new();
    world.put("own", "own").await;
    world.publish().await;
    (world, first)
}

#[tokio::test]
async fn a_deletion_names_the_first_source_as_the_entry_did() {
    let (mut world, first) = of_a_chain().await;
    world.links = vec![first.clone(), Link::new(relation::VIA, "http://g.test/x")];
    world.delete("x").await;
    world.links = Vec::new();
    world.delete("own").await;
    assert_eq!(world.publish().await.changes, 2);
    let own = Link::new(relation::VIA, "http://e.org/own");
    assert_eq!(links_of_deletions(&world).await, [vec![first], vec![own]]);
}

#[tokio::test]
async fn a_withdrawal_names_the_first_source_too() {
    let (mut world, first) = of_a_chain().await;
    world.publication.takedown = Takedown::parse(uri("x").as_str()).unwrap();
    assert_eq!(world.publish().await.changes, 1);
    assert_eq!(links_of_deletions(&world).await, [vec![first]]);
}

/// A publication whose Resource List is not made anew.
fn large() -> Policy {
    Policy { small: 0, changed_percent: 1_000_000, edition_age: Duration::from_secs(1 << 30), ..small() }
}

#[tokio::test]
async fn a_damaged_resource_is_told_as_deleted_and_as_created_when_it_is_back() {
    for policy in [Policy::default(), large()] {
        let mut world = World::with(5, policy).await;
        world.publish().await;
        let mut reader = Follower::new(&world.objects);
        reader.follow().await;
        world.put("001", "soon damaged").await;
        world.damage("soon damaged").await;
        let done = world.publish().await;
        assert_eq!((done.changes, done.damaged), (1, 1));
        let via = Link::new(relation::VIA, "http://e.org/001");
        let [links] = &links_of_deletions(&world).await[..] else { panic!("one deletion") };
        assert_eq!((links.len(), &links[0].href), (1, &via.href));
        let mut expected = world.stored().await;
        expected.remove("http://e.org/001");
        reader.follow().await;
        assert_eq!(reader.held, expected);
        let mut fresh = Follower::new(&world.objects);
        fresh.follow().await;
        assert_eq!(fresh.held, expected);

        let idle = world.publish().await;
        assert_eq!((idle.changes, idle.damaged, idle.documents), (0, 1, 0), "it is told once");
        world.put("001", "damaged again").await;
        world.damage("damaged again").await;
        let again = world.publish().await;
        assert_eq!((again.changes, again.damaged), (0, 1), "readers hold nothing of it");

        world.repair("damaged again").await;
        let done = world.publish().await;
        assert_eq!((done.changes, done.damaged), (1, 0));
        let last = told(&world).await.pop().unwrap();
        assert_eq!(last.metadata.change, Some(Change::Created));
        reader.follow().await;
        assert_eq!(reader.held, world.stored().await);
        let mut fresh = Follower::new(&world.objects);
        fresh.follow().await;
        assert_eq!(fresh.held, world.stored().await);
    }
}

#[tokio::test]
async fn a_new_version_of_a_damaged_resource_is_told_as_created() {
    let mut world = World::with(5, large()).await;
    world.publish().await;
    world.put("001", "soon damaged").await;
    world.damage("soon damaged").await;
    world.publish().await;
    world.put("001", "good").await;
    assert_eq!(world.publish().await.changes, 1, "once");
    let kinds: Vec<_> = told(&world).await.into_iter().map(|entry| entry.metadata.change).collect();
    assert_eq!(kinds, [Some(Change::Deleted), Some(Change::Created)]);
}

#[tokio::test]
async fn an_old_deletion_does_not_take_the_file_of_one_that_came_back_and_is_damaged_since_today() {
    let mut world = World::with(5, large()).await;
    world.publish().await;
    world.delete("001").await;
    world.publish().await;
    world.put("001", "back").await;
    world.publish().await;
    world.passes(47);
    world.put("001", "soon damaged").await;
    world.damage("soon damaged").await;
    world.publish().await;
    let is_there = async |world: &World| {
        world.files().await.iter().any(|(path, _)| path == "resources/http/2/e.org/001")
    };
    world.passes(2);
    world.publish().await;
    assert!(is_there(&world).await, "who has the list of yesterday gets it");
    world.passes(47);
    world.publish().await;
    assert!(!is_there(&world).await);
}

#[tokio::test]
async fn the_earlier_file_of_a_damaged_resource_goes_after_two_days() {
    let mut world = World::with(5, large()).await;
    world.publish().await;
    world.put("001", "soon damaged").await;
    world.damage("soon damaged").await;
    let is_there = async |world: &World| {
        world.files().await.iter().any(|(path, _)| path == "resources/http/2/e.org/001")
    };
    world.publish().await;
    assert!(is_there(&world).await, "who has the old list gets it");
    world.passes(49);
    world.publish().await;
    assert!(!is_there(&world).await);
}

#[tokio::test]
async fn what_goes_in_one_run_costs_one_save_before_it_and_one_behind_it() {
    let failing = Failing::new();
    let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
    let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, small()).await;
    for number in 0..5 {
        world.put(&format!("{number:03}"), &format!("body {number}")).await;
    }
    world.publish().await;
    world.delete("001").await;
    world.publish().await;
    world.passes(49);
    // The parts of the first Resource List go, and the file of what was deleted.
    failing.left.store(1_000, Ordering::Relaxed);
    let done = world.publish().await;
    let writes = 1_000 - failing.left.load(Ordering::Relaxed);
    assert!(done.removed >= 2 && done.documents == 0, "{done:?}");
    assert!(!world.files().await.iter().any(|(path, _)| path.ends_with("e.org/001")));
    assert_eq!(writes, i64::try_from(done.removed).unwrap() + 2);
}
