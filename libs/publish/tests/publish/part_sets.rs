//! Sets by rule: parts of a publication, with lists of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::ObjectStore;
use publish::{PartSet, Place, PublishError, PublishedPath};

use crate::killed::Failing;
use crate::reader::{Follower, document};
use crate::world::{BASE, World, small, uri};

/// Gives a publication of documents such sets.
fn set(world: &mut World, rules: &[&str]) {
    world.publication.with_bytes = false;
    let sets = rules.iter().map(|rule| PartSet::new(rule.parse().unwrap()).unwrap());
    world.publication.sets = sets.collect();
}

/// What is stored of resources whose names are so.
async fn stored(world: &World, is_so: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let all = world.stored().await.into_iter();
    all.filter(|(uri, _)| is_so(uri.strip_prefix("http://e.org/").unwrap())).collect()
}

fn is_low(name: &str) -> bool {
    name < "005"
}

fn is_odd(name: &str) -> bool {
    name.ends_with(['1', '3', '5', '7', '9'])
}

const LOW: &str = "low=/00[0-4]";
const ODD: &str = "odd=[13579]$";

#[tokio::test]
async fn each_set_has_lists_of_what_matches_its_rule_and_of_nothing_else() {
    let mut world = World::with(12, small()).await;
    set(&mut world, &[LOW, ODD]);
    world.publish().await;
    let mut readers = [0, 1, 2].map(|set| Follower::of_set(&world.objects, set));
    for round in 0..3 {
        for reader in &mut readers {
            reader.follow().await;
        }
        assert_eq!(readers[0].held, world.stored().await);
        assert_eq!(readers[1].held, stored(&world, is_low).await);
        assert_eq!(readers[2].held, stored(&world, is_odd).await);
        world.put("001", &format!("both {round}")).await;
        world.put("002", &format!("low {round}")).await;
        world.put("008", &format!("neither {round}")).await;
        world.put(&format!("1{round}7"), "odd").await;
        world.delete(&format!("00{}", round + 3)).await;
        world.publish().await;
    }

    // All lists name the one URL of a resource, and lead up to one Source Description.
    let list = document(&world.objects, &format!("{BASE}sets/low/changelist.xml")).await;
    let changes = document(&world.objects, &list.entries[0].loc).await;
    let url = format!("{BASE}{}", PublishedPath::of(&uri("001")).as_str());
    assert!(changes.entries.iter().any(|entry| entry.loc == url));
    let told = |name: &str| changes.entries.iter().any(|entry| entry.loc.ends_with(name));
    assert!(told("/002") && !told("/008"));
    let above = document(&world.objects, &format!("{BASE}sets/low/capabilitylist.xml")).await;
    assert_eq!(above.header.link("up").unwrap().href, format!("{BASE}.well-known/resourcesync"));
    assert!(above.entries.iter().all(|entry| entry.loc.starts_with(&format!("{BASE}sets/low/"))));

    // Without changes nothing is written.
    let before = world.all_files().await;
    assert_eq!(world.publish().await.documents, 0);
    assert_eq!(world.all_files().await, before);
}

#[tokio::test]
async fn a_set_with_another_rule_is_published_anew_and_one_that_is_gone_is_not_led_to() {
    let mut world = World::with(10, small()).await;
    set(&mut world, &[LOW, ODD]);
    world.publish().await;
    world.put("001", "other").await;
    set(&mut world, &["low=/00[0-6]"]);
    world.publish().await;
    let mut reader = Follower::of_set(&world.objects, 1);
    reader.follow().await;
    assert_eq!(reader.held, stored(&world, |name| name < "007").await);
    world.put("006", "another").await;
    world.publish().await;
    reader.follow().await;
    assert_eq!(reader.held, stored(&world, |name| name < "007").await);
    let description = document(&world.objects, &format!("{BASE}.well-known/resourcesync")).await;
    assert_eq!(description.entries.len(), 2);
}

#[tokio::test]
async fn the_files_of_a_set_without_its_rule_go_after_two_days_and_it_may_come_back() {
    let mut world = World::with(10, small()).await;
    set(&mut world, &[LOW, ODD]);
    world.publish().await;
    let files = async |world: &World| {
        let all = world.all_files().await.into_iter();
        all.filter(|(path, _)| path.starts_with("sets/low/")).count()
    };
    let before = files(&world).await;
    set(&mut world, &[ODD]);
    world.publish().await;
    world.passes(47);
    world.publish().await;
    assert_eq!(files(&world).await, before, "readers may use them");
    world.passes(1);
    assert_eq!(world.publish().await.removed, before as u64);
    assert_eq!(files(&world).await, 0);
    let mut odd = Follower::of_set(&world.objects, 1);
    odd.follow().await;
    assert_eq!(odd.held, stored(&world, is_odd).await, "the other one is as before");

    // One that is back within the time continues, and one that is back later begins anew.
    for hours in [47, 49] {
        set(&mut world, &[LOW]);
        world.publish().await;
        let mut low = Follower::of_set(&world.objects, 1);
        low.follow().await;
        set(&mut world, &[ODD]);
        world.publish().await;
        world.put("003", &format!("after {hours} hours")).await;
        world.passes(hours);
        set(&mut world, &[LOW]);
        world.publish().await;
        if hours > 48 {
            low = Follower::of_set(&world.objects, 1);
        }
        low.follow().await;
        assert_eq!(low.held, stored(&world, is_low).await);
        set(&mut world, &[ODD]);
        world.publish().await;
    }
}

#[tokio::test]
async fn a_set_with_more_long_uris_than_are_listed_at_a_time_is_removed_whole_and_may_come_back() {
    let mut world = World::with(10, small()).await;
    let long = "x".repeat(1_100);
    for number in 0..1_001 {
        world.put(&format!("low/{long}{number:04}"), "body").await;
    }
    set(&mut world, &["low=/low/"]);
    world.publish().await;
    set(&mut world, &[]);
    world.publish().await;
    world.passes(48);
    world.publish().await;
    let left = world.all_files().await.into_iter().filter(|(path, _)| path.starts_with("sets/low/")).count();
    assert_eq!(left, 0);
    set(&mut world, &["low=/low/"]);
    world.publish().await;
    let mut low = Follower::of_set(&world.objects, 1);
    low.follow().await;
    assert_eq!(low.held, stored(&world, |name| name.starts_with("low/")).await);
}

#[tokio::test]
async fn a_set_whose_removal_was_killed_is_published_anew() {
    let failing = Failing::new();
    let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
    let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, small()).await;
    for number in 0..9 {
        world.put(&format!("{number:03}"), &format!("body {number}")).await;
    }
    for deletes in 0..12 {
        set(&mut world, &[LOW]);
        world.publish().await;
        set(&mut world, &[]);
        world.publish().await;
        world.passes(49);
        failing.deletes.store(deletes, Ordering::Relaxed);
        let killed = world.try_publish().await;
        failing.deletes.store(i64::MAX, Ordering::Relaxed);
        assert!(killed.is_err() || deletes > 3, "{deletes}");
        set(&mut world, &[LOW]);
        world.publish().await;
        let mut low = Follower::of_set(&world.objects, 1);
        low.follow().await;
        assert_eq!(low.held, stored(&world, is_low).await, "{deletes}");
    }
}

#[tokio::test]
async fn a_set_has_all_after_a_kill_at_any_write() {
    let mut kills = 0;
    for writes in 0..40 {
        let failing = Failing::new();
        let objects: Arc<dyn ObjectStore> = Arc::clone(&failing) as _;
        let mut world = World::at(Place::bucket("failing", Arc::clone(&objects)), objects, small()).await;
        for number in 0..9 {
            world.put(&format!("{number:03}"), &format!("body {number}")).await;
        }
        set(&mut world, &[LOW]);
        let mut readers = [0, 1].map(|set| Follower::of_set(&world.objects, set));
        for round in 0..3 {
            failing.left.store(writes, Ordering::Relaxed);
            if world.try_publish().await.is_err() {
                kills += 1;
                if round > 0 {
                    for reader in &mut readers {
                        reader.follow_between().await;
                    }
                }
            }
            failing.left.store(i64::MAX, Ordering::Relaxed);
            world.publish().await;
            for reader in &mut readers {
                reader.follow().await;
            }
            assert_eq!(readers[0].held, world.stored().await, "{writes}, round {round}");
            assert_eq!(readers[1].held, stored(&world, is_low).await, "{writes}, round {round}");
            world.put("002", &format!("round {round}")).await;
            world.put("006", &format!("round {round}")).await;
            world.delete(&format!("00{}", round + 3)).await;
        }
    }
    assert!(kills > 40, "{kills}");
}

#[tokio::test]
async fn what_is_withdrawn_leaves_the_sets_too_and_bytes_are_not_laid_down_beside_them() {
    let mut world = World::with(6, small()).await;
    set(&mut world, &[LOW]);
    world.publish().await;
    let mut reader = Follower::of_set(&world.objects, 1);
    reader.follow().await;
    world.publication.takedown = publish::Takedown::parse(uri("001").as_str()).unwrap();
    world.publish().await;
    reader.follow().await;
    assert_eq!(reader.held, stored(&world, |name| is_low(name) && name != "001").await);

    world.publication.with_bytes = true;
    assert!(matches!(world.try_publish().await, Err(PublishError::Refused(_))));
}
