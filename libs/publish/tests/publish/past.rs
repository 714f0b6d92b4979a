//! Documents of the past, and the Archives that list them.

use std::collections::BTreeMap;
use std::time::Duration;

use publish::{Archive, Policy};
use resourcesync::{Capability, Entry, relation};

use crate::reader::{Document, declared, document};
use crate::world::{BASE, World, small};

const DAY: i64 = 24;

/// Editions after each change, of one document.
fn each_change() -> Policy {
    Policy { archive: Archive::All, edition_pause: Duration::ZERO, ..Policy::default() }
}

/// The entries of an Archive; none if the Capability List does not name it.
async fn archive(world: &World, kind: Capability) -> Option<Vec<Entry>> {
    let capabilities = document(&world.objects, &format!("{BASE}capabilitylist.xml")).await;
    let named =
        capabilities.entries.iter().find(|entry| entry.metadata.capability.as_ref() == Some(&kind))?;
    let Document { header, entries } = document(&world.objects, &named.loc).await;
    assert_eq!(header.capability, Some(kind));
    assert!(header.link(relation::UP).is_some());
    Some(entries)
}

/// What a Resource List of the past names: the digest of each URI.
async fn named(world: &World, entry: &Entry) -> BTreeMap<String, String> {
    let list = document(&world.objects, &entry.loc).await;
    assert_eq!((list.header.at, list.header.completed), (entry.metadata.at, entry.metadata.completed));
    let mut all = Vec::new();
    if list.header.is_index() {
        for part in &list.entries {
            all.extend(document(&world.objects, &part.loc).await.entries);
        }
    } else {
        all = list.entries;
    }
    all.iter().map(declared).collect()
}

/// Checks that each Resource List of the past is there, with its own time.
pub(crate) async fn are_readable(world: &World) {
    for entry in archive(world, Capability::ResourceListArchive).await.unwrap_or_default() {
        named(world, &entry).await;
    }
}

#[tokio::test]
async fn each_replaced_list_is_listed_oldest_first_and_says_what_there_was() {
    for policy in [each_change(), Policy { archive: Archive::All, ..small() }] {
        let mut world = World::with(12, policy).await;
        world.publish().await;
        assert!(archive(&world, Capability::ResourceListArchive).await.is_none(), "nothing was replaced yet");
        let mut states = vec![world.stored().await];
        for round in 0..3 {
            // More than what a document stays without an Archive.
            world.passes(4 * DAY);
            for number in 0..4 {
                world.put(&format!("{number:03}"), &format!("{number} in round {round}")).await;
            }
            world.delete(&format!("{:03}", 10 - round)).await;
            world.publish().await;
            states.push(world.stored().await);
        }
        world.passes(4 * DAY);
        world.publish().await;
        let present = states.pop();
        let past = archive(&world, Capability::ResourceListArchive).await.expect("an Archive");
        let mut found = Vec::new();
        for entry in &past {
            found.push(named(&world, entry).await);
        }
        assert_eq!(found, states);
        assert!(past.is_sorted_by_key(|entry| entry.metadata.at.map(|at| at.instant())));
        assert_eq!(world.stored().await, present.unwrap());
        let before = world.files().await;
        assert_eq!(world.publish().await.documents, 0);
        assert_eq!(world.files().await, before, "an idle run writes nothing");
    }
}

#[tokio::test]
async fn closed_change_lists_that_leave_the_index_stay_and_join() {
    let mut world = World::with(3, Policy { archive: Archive::All, ..Policy::default() }).await;
    world.publish().await;
    for round in 0..20 {
        world.passes(3 * DAY);
        world.put("001", &format!("round {round}")).await;
        world.publish().await;
    }
    let past = archive(&world, Capability::ChangeListArchive).await.expect("an Archive");
    assert!(past.len() > 3, "{past:?}");
    let mut until = None;
    for entry in &past {
        assert!(until.is_none() || until == entry.metadata.from, "they join");
        until = entry.metadata.until;
        let list = document(&world.objects, &entry.loc).await;
        assert_eq!((list.header.from, list.header.until), (entry.metadata.from, entry.metadata.until));
    }
    let index = document(&world.objects, &format!("{BASE}changelist.xml")).await;
    assert_eq!(index.entries[0].metadata.from, until, "the index goes on where they end");
}

#[tokio::test]
async fn what_is_over_goes_with_its_parts_and_nothing_that_is_still_named() {
    let mut world =
        World::with(12, Policy { archive: Archive::For(Duration::from_secs(10 * 86_400)), ..small() }).await;
    world.publish().await;
    for round in 0..6 {
        world.passes(4 * DAY);
        world.put("001", &format!("round {round}")).await;
        world.put("002", &format!("round {round}")).await;
        world.publish().await;
    }
    let past = archive(&world, Capability::ResourceListArchive).await.expect("an Archive");
    assert!((2..4).contains(&past.len()), "{}", past.len());
    are_readable(&world).await;
    let files = world.files().await.len();

    // An operator turns it off: all of it goes, after the time for its readers.
    world.publication.policy.archive = Archive::Off;
    world.publish().await;
    assert!(archive(&world, Capability::ResourceListArchive).await.is_none());
    world.passes(3 * DAY);
    world.publish().await;
    let paths: Vec<String> = world.files().await.into_iter().map(|(path, _)| path).collect();
    assert!(paths.len() < files && !paths.iter().any(|path| path.contains("archive")), "{paths:?}");
    let mut reader = crate::reader::Follower::new(&world.objects);
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);
}

#[tokio::test]
async fn entries_link_to_their_versions_if_a_server_has_them() {
    let world = World::with(2, Policy { version_links: true, ..Policy::default() }).await;
    world.publish().await;
    let list = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
    for entry in list.entries {
        let (_, sha256) = declared(&entry);
        let path = entry.loc.strip_prefix(BASE).unwrap();
        let link = entry.link(relation::MEMENTO).expect("a link to the version");
        assert_eq!(link.href, format!("{BASE}versions/{sha256}/{path}"));
    }
}
