//! Later publications: what changed, and nothing else.

use std::collections::BTreeMap;

use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use publish::{CatalogRecords, Policy, PublishError, Seen};

use crate::reader::{Follower, document};
use crate::world::{BASE, World, small};

fn changed(before: &[(String, Bytes)], after: &[(String, Bytes)]) -> Vec<String> {
    let before: BTreeMap<_, _> = before.iter().cloned().collect();
    let differs = |(path, bytes): &&(String, Bytes)| before.get(path) != Some(bytes);
    after.iter().filter(differs).map(|(path, _)| path.clone()).collect()
}

#[tokio::test]
async fn a_change_is_told_in_the_open_list_and_nothing_else_is_written() {
    let mut world = World::with(100, small()).await;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    let before = world.files().await;

    world.put("007", "something else").await;
    let done = world.publish().await;
    assert_eq!((done.changes, done.files), (1, 1));
    let written = changed(&before, &world.files().await);
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(
        written[0].starts_with("changelist/") && written[1] == "resources/http/2/e.org/007",
        "{written:?}"
    );
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);

    let before = world.files().await;
    let done = world.publish().await;
    assert_eq!((done.changes, done.files, done.documents), (0, 0, 0));
    assert_eq!(world.files().await, before, "an idle run writes nothing");
}

#[tokio::test]
async fn a_new_edition_keeps_the_parts_that_did_not_change() {
    let mut world = World::with(100, small()).await;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    let before = world.files().await;
    for number in 40..45 {
        world.put(&format!("{number:03}"), "new").await;
    }
    world.delete("046").await;
    world.put("046x", "created").await;
    let done = world.publish().await;
    assert_eq!(done.changes, 7);
    let after = world.files().await;
    let parts: Vec<_> =
        changed(&before, &after).into_iter().filter(|path| path.starts_with("resourcelist/")).collect();
    let all = document(&world.objects, &format!("{BASE}resourcelist.xml")).await.entries.len();
    assert!(parts.len() <= 5 && !parts.is_empty(), "{parts:?} of {all}");
    assert_eq!(done.parts_kept, (all - parts.len()) as u64);
    for (path, _) in before.iter().filter(|(path, _)| path.starts_with("resourcelist/")) {
        assert!(after.iter().any(|(other, _)| other == path), "{path} stays for readers of the old edition");
    }
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, world.stored().await);
}

#[tokio::test]
async fn a_replaced_version_is_told_once_as_what_it_is_now() {
    let mut world = World::with(3, Policy { small: 0, changed_percent: 10_000, ..Policy::default() }).await;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    world.put("new", "first").await;
    world.put("new", "second").await;
    world.put("gone", "soon").await;
    world.delete("gone").await;
    let done = world.publish().await;
    assert_eq!(done.changes, 2, "one each");
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);
}

#[tokio::test]
async fn full_lists_are_closed_and_never_written_again() {
    let mut world = World::with(10, Policy { changed_percent: 1_000_000, ..small() }).await;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    let mut closed: BTreeMap<String, Bytes> = BTreeMap::new();
    for round in 0..6 {
        for number in 0..3 + 3 * (round % 2) {
            world.put(&format!("{number:03}"), &format!("round {round}")).await;
        }
        world.publish().await;
        reader.follow().await;
        assert_eq!(reader.held, world.stored().await);
        let files: BTreeMap<String, Bytes> = world.files().await.into_iter().collect();
        for (path, bytes) in &closed {
            assert_eq!(files.get(path), Some(bytes), "{path} was closed");
        }
        let index = document(&world.objects, &format!("{BASE}changelist.xml")).await;
        for list in index.entries.iter().filter(|list| list.metadata.until.is_some()) {
            let path = list.loc.strip_prefix(BASE).unwrap();
            closed.insert(path.to_owned(), files[path].clone());
        }
    }
    assert!(closed.len() >= 6, "{:?}", closed.keys());
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, world.stored().await);
}

#[tokio::test]
async fn a_list_is_closed_after_a_day() {
    let mut world =
        World::with(10, Policy { changed_percent: 1_000_000, small: 0, ..Policy::default() }).await;
    world.publish().await;
    world.put("001", "one day").await;
    world.publish().await;
    world.passes(25);
    world.put("002", "the next").await;
    world.publish().await;
    let index = document(&world.objects, &format!("{BASE}changelist.xml")).await;
    assert_eq!(index.entries.len(), 2);
}

#[tokio::test]
async fn old_lists_old_parts_and_files_of_the_deleted_go_when_their_time_is_over() {
    let policy = Policy { edition_age: std::time::Duration::from_secs(3_600), ..small() };
    let mut world = World::with(20, policy).await;
    world.publish().await;
    let first = world.files().await;
    world.delete("003").await;
    world.delete("004").await;
    world.publish().await;
    let has = |files: &[(String, Bytes)], path: &str| files.iter().any(|(other, _)| other == path);
    assert!(has(&world.files().await, "resources/http/2/e.org/003"), "readers of the old list get it");

    world.passes(24);
    world.put("004", "back").await;
    world.publish().await;
    world.passes(25);
    world.publish().await;
    let files = world.files().await;
    assert!(!has(&files, "resources/http/2/e.org/003"));
    assert!(has(&files, "resources/http/2/e.org/004"), "it is back");

    for _ in 0..50 {
        world.passes(24);
        let clock = world.clock;
        for number in 0..20 {
            world.put(&format!("{number:03}"), &format!("at {clock}")).await;
        }
        world.publish().await;
    }
    let files = world.files().await;
    for (path, _) in first.iter().filter(|(path, _)| path.starts_with("resourcelist/")) {
        assert!(!has(&files, path), "{path} is named by nothing");
    }
    let lists = files.iter().filter(|(path, _)| path.starts_with("changelist/")).count();
    assert!(lists < 200, "20 changes a day, 4 in a list, 33 days: {lists}");
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, world.stored().await);
}

#[tokio::test]
async fn records_that_may_lag_behind_what_is_published_make_nothing_anew() {
    let world = World::with(4, small()).await;
    world.publish().await;
    let before = world.all_files().await;
    let mut see = |_: Seen<'_>| {};
    // As a reader would show it that was opened before the last change.
    let behind = World::with(3, small()).await;
    let records = CatalogRecords::new(&behind.catalog, &behind.store).that_may_lag();
    let tried = world.publication.run(&records, world.now(), &mut see).await;
    assert!(matches!(tried, Err(PublishError::Behind)), "{tried:?}");
    assert!(world.all_files().await == before, "nothing was written");
    let records = CatalogRecords::new(&world.catalog, &world.store).that_may_lag();
    let done = world.publication.run(&records, world.now(), &mut see).await.unwrap();
    assert_eq!((done.changes, done.documents), (0, 0));
}

#[tokio::test]
async fn a_catalog_made_anew_is_published_anew() {
    // The log of the other one is shorter, as long, or longer.
    for resources in [3, 20, 25] {
        let world = World::with(20, small()).await;
        world.publish().await;
        let mut other = World::new(small()).await;
        other.passes(1);
        for number in 0..resources {
            other.put(&format!("other-{number:03}"), "body").await;
        }
        other.objects = world.objects.clone();
        other.publication.place = world.publication.place.clone();
        let done = other.publish().await;
        assert_eq!((done.resources, done.changes), (resources, 0));
        let mut fresh = Follower::new(&other.objects);
        fresh.follow().await;
        assert_eq!(fresh.held, other.stored().await);
        // It is continued from then on.
        other.put("later", "body").await;
        assert_eq!(other.publish().await.changes, 1);
        fresh.follow().await;
        assert_eq!(fresh.held, other.stored().await);
    }
}

/// The files of resources.
async fn laid(world: &World) -> Vec<String> {
    let files = world.files().await.into_iter().map(|(path, _)| path);
    files.filter(|path| path.starts_with("resources/")).collect()
}

#[tokio::test]
async fn files_of_resources_that_a_catalog_made_anew_lacks_go_after_two_days() {
    let long = "x".repeat(300);
    let mut world = World::with(20, small()).await;
    world.put(&long, "long").await;
    world.publish().await;
    let mut other = World::new(small()).await;
    other.passes(1);
    other.put("001", "there, too").await;
    other.put("other", "body").await;
    other.objects = world.objects.clone();
    other.publication.place = world.publication.place.clone();
    other.publish().await;
    assert_eq!(laid(&other).await.len(), 21 + 1, "readers of the old list get them");
    other.passes(47);
    other.put("003", "back").await;
    other.publish().await;
    assert_eq!(laid(&other).await.len(), 21 + 1);
    other.passes(2);
    assert!(other.publish().await.removed >= 19, "those, and lists of the old one");
    let left = laid(&other).await;
    assert_eq!(left, ["001", "003", "other"].map(|name| format!("resources/http/2/e.org/{name}")));
    assert!(other.own_files().await.iter().all(|path| !path.contains("left-behind")));
    let mut fresh = Follower::new(&other.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, other.stored().await);
    other.passes(72);
    other.publish().await;
    assert_eq!(laid(&other).await, left);
}

#[tokio::test]
async fn a_publication_without_a_mark_of_its_catalog_is_continued_and_gets_one() {
    let mut world = World::with(20, small()).await;
    world.publish().await;
    let mark = async |world: &World, new: Option<serde_json::Value>| {
        let path = Path::from(".thresher/publication.json");
        let bytes = world.objects.get(&path).await.unwrap().bytes().await.unwrap();
        let mut state: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let fields = state.as_object_mut().unwrap();
        let old = fields.remove("mark");
        fields.extend(new.map(|new| ("mark".to_owned(), new)));
        world.objects.put(&path, state.to_string().into()).await.unwrap();
        old
    };
    assert!(mark(&world, None).await.is_some());
    world.put("new", "body").await;
    assert_eq!(world.publish().await.changes, 1);
    let own = mark(&world, None).await;
    assert!(own.is_some());
    // Without changes there is nothing to write.
    mark(&world, own).await;
    assert_eq!(world.publish().await.documents, 0);
}

#[tokio::test]
async fn the_file_of_a_resource_stays_for_two_days_after_its_deletion_was_told_not_settled() {
    let mut world = World::with(20, small()).await;
    world.publish().await;
    world.delete("003").await;
    let is_there = async |world: &World| {
        let files = world.files().await;
        files.iter().any(|(path, _)| path == "resources/http/2/e.org/003")
    };
    // Nothing is published for five days.
    world.passes(5 * 24);
    world.publish().await;
    assert!(is_there(&world).await, "who read the list a moment ago asks for it");
    world.passes(47);
    world.put("004", "another change").await;
    world.publish().await;
    assert!(is_there(&world).await);
    world.passes(1);
    world.publish().await;
    assert!(!is_there(&world).await, "two days are over");
}

/// Whether each list of the Change List Index never changes, as a cache is told.
async fn are_final(world: &World) -> Vec<bool> {
    let index = document(&world.objects, &format!("{BASE}changelist.xml")).await;
    let mut are_final = Vec::new();
    for list in index.entries {
        let path = list.loc.strip_prefix(BASE).unwrap();
        are_final.push(world.publication.place.document(path).await.unwrap().unwrap().is_final);
    }
    are_final
}

#[tokio::test]
async fn closed_lists_are_final_for_caches_and_the_open_one_is_not() {
    let policy = Policy { change_list_age: std::time::Duration::ZERO, small: 0, ..Policy::default() };
    // The lists are small ones, and then one that is not held in memory.
    for changes in [1, 300] {
        let mut world = World::with(10, policy).await;
        world.publish().await;
        assert_eq!(are_final(&world).await, [false]);
        for round in 1..3 {
            for number in 0..changes {
                world.put(&format!("{number:03}"), &format!("round {round}")).await;
            }
            world.publish().await;
        }
        assert_eq!(are_final(&world).await, [true, false]);
    }
}
