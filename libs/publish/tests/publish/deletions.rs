//! What is told of resources that are there no more.

use publish::{Policy, Takedown};
use resourcesync::{Change, Entry, Link, relation};

use crate::reader::document;
use crate::world::{BASE, World, uri};

/// All changes that are told, oldest first.
async fn told(world: &World) -> Vec<Entry> {
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
