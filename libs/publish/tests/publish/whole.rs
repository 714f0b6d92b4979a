//! A first publication.

use std::path::Path;
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use publish::{Base, Place, Policy, PublishError};
use resourcesync::{Link, relation};
use store::SourceMarker;

use crate::reader::{Follower, document, file};
use crate::world::{BASE, World, small};

#[tokio::test]
async fn a_small_set_is_one_list_and_every_document_is_strictly_right() {
    let world = World::with(7, Policy::default()).await;
    let done = world.publish().await;
    assert_eq!((done.resources, done.files, done.damaged), (7, 7, 0));
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);

    let list = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
    let entry = &list.entries[3];
    assert_eq!(entry.loc, format!("{BASE}resources/http/2/e.org/003"));
    assert_eq!(entry.metadata.media_type.as_deref(), Some("text/plain"));
    let lastmod = entry.lastmod.map(|time| time.instant());
    assert_eq!(lastmod, Some("2026-01-01T00:00:04Z".parse().unwrap()), "our time");
    let via = entry.link(relation::VIA).unwrap();
    assert_eq!(via.href, "http://e.org/003");
    assert_eq!(via.modified.map(|time| time.to_string()).as_deref(), Some("2025-12-01T00:00:00Z"), "theirs");
    let page = file(&world.objects, &format!("{BASE}index.html")).await;
    assert!(String::from_utf8_lossy(&page).contains("rel=\"resourcesync\""));
    let robots = file(&world.objects, &format!("{BASE}robots.txt")).await;
    assert!(String::from_utf8_lossy(&robots).contains(&format!("Sitemap: {BASE}resourcelist.xml")));
}

#[tokio::test]
async fn a_large_set_is_an_index_of_parts() {
    let world = World::with(40, small()).await;
    world.publish().await;
    let index = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
    assert!(index.header.is_index() && index.entries.len() >= 10, "{}", index.entries.len());
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);
}

#[tokio::test]
async fn nothing_stored_is_an_empty_list() {
    let world = World::new(Policy::default()).await;
    let done = world.publish().await;
    assert_eq!((done.resources, done.files), (0, 0));
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    assert!(reader.held.is_empty());
}

#[tokio::test]
async fn damaged_bytes_are_left_out_and_counted() {
    let mut world = World::with(5, Policy::default()).await;
    world.damage("body 2").await;
    let done = world.publish().await;
    assert_eq!((done.resources, done.files, done.damaged), (4, 4, 1));
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    assert_eq!(reader.held.len(), 4);
    assert!(!reader.held.contains_key("http://e.org/002"));

    world.put("005", "another").await;
    let done = world.publish().await;
    assert_eq!((done.resources, done.damaged), (5, 1), "it stays out");
    reader.follow().await;
    Follower::new(&world.objects).follow().await;

    world.repair("body 2").await;
    world.put("006", "one more").await;
    let done = world.publish().await;
    assert_eq!((done.resources, done.damaged), (7, 0));
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, world.stored().await);
}

#[tokio::test]
async fn documents_alone_are_published_without_bytes() {
    let mut world = World::with(5, Policy::default()).await;
    world.publication.with_bytes = false;
    let done = world.publish().await;
    assert_eq!((done.resources, done.files), (5, 0));
    assert!(world.files().await.iter().all(|(path, _)| !path.starts_with("resources/")));
}

#[tokio::test]
async fn a_uri_too_long_for_a_path_is_found_by_its_digest() {
    let mut world = World::with(1, Policy::default()).await;
    let name = "x".repeat(300);
    world.put(&name, "long").await;
    world.publish().await;
    let list = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
    let path = list.entries[1].loc.strip_prefix(BASE).unwrap();
    assert!(path.starts_with("resources/sha256/"), "{path}");
    let found = world.publication.resource_at(path).await.unwrap();
    assert_eq!(found, Some(crate::world::uri(&name)));
    assert_eq!(world.publication.resource_at("resources/sha256/00").await.unwrap(), None);
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    assert_eq!(reader.held, world.stored().await);
}

#[tokio::test]
async fn a_name_that_is_no_uri_is_published_as_one() {
    let mut world = World::new(Policy::default()).await;
    world.put("so & so \u{e9}.txt", "odd").await;
    world.publish().await;
    let list = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
    assert_eq!(list.entries[0].loc, format!("{BASE}resources/http/2/e.org/so!20!26!20so!20!C3!A9.txt"));
    assert_eq!(list.entries[0].link(relation::VIA).unwrap().href, "http://e.org/so%20&%20so%20%C3%A9.txt");
    assert_eq!(file(&world.objects, &list.entries[0].loc).await, "odd");
}

#[tokio::test]
async fn a_link_that_no_document_can_hold_is_left_out_and_its_resource_is_published() {
    let mut world = World::new(Policy::default()).await;
    let to = |rel: &str, href: &str| Link::new(rel, href);
    world.links = vec![
        Link {
            media_type: Some("text/\u{fffe}".to_owned()),
            hash: Some("md5:\u{1}".to_owned()),
            encoding: Some("\u{ffff}".to_owned()),
            path: Some("/\u{0}".to_owned()),
            other: [("a", "good"), ("b", "\u{ffff}")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
            ..to(relation::VIA, "http://first.test/1")
        },
        to(relation::LICENSE, "http://s.test/\u{ffff}"),
        to(relation::PROFILE, "http://s.test/\u{fffe}"),
        Link { media_type: Some("\u{1b}".to_owned()), ..to(relation::LICENSE, "http://s.test/good") },
    ];
    world.put("1", "one").await;
    world.links[0].href = "http://first.test/\u{ffff}".to_owned();
    world.put("2", "two").await;
    assert_eq!(world.publish().await.resources, 2);
    let list = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
    let hrefs =
        |entry: &resourcesync::Entry| entry.links.iter().map(|link| link.href.clone()).collect::<Vec<_>>();
    assert_eq!(hrefs(&list.entries[0]), ["http://first.test/1", "http://s.test/good"]);
    let via = &list.entries[0].links[0];
    assert_eq!((&via.media_type, &via.hash, &via.encoding, &via.path), (&None, &None, &None, &None));
    assert_eq!(via.other.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(list.entries[1].links[0].href, "http://e.org/2", "the Source that it was harvested from");
    assert_eq!(list.entries[1].links[1].href, "http://s.test/good");
    // The links of a tombstone, too.
    world.delete("2").await;
    assert_eq!(world.publish().await.changes, 1);
    let index = document(&world.objects, &format!("{BASE}changelist.xml")).await;
    let changes = document(&world.objects, &index.entries[0].loc).await;
    assert_eq!(hrefs(&changes.entries[0]), ["http://e.org/2"]);
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    assert_eq!(reader.held.len(), 1);
}

/// A place in a directory.
fn directory(path: &Path) -> Place {
    std::fs::create_dir_all(path).unwrap();
    let objects = Arc::new(LocalFileSystem::new_with_prefix(path).unwrap());
    Place::directory(path, objects).unwrap()
}

#[tokio::test]
async fn a_directory_has_files_that_any_server_can_serve() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let folder = tempfile::tempdir().unwrap();
    let mut world = World::with(3, Policy::default()).await;
    world.put("a", "file").await;
    world.put("a/b", "below").await;
    world.put("large", &"x".repeat(3 << 20)).await;
    world.publication.place = directory(folder.path());
    world.publish().await;
    let read = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read("resources/http/2/e.org/a"), "file");
    assert_eq!(read("resources/http/3/e.org/a/b"), "below");
    assert_eq!(read("resources/http/2/e.org/large").len(), 3 << 20);
    assert!(read(".well-known/resourcesync").contains("capabilitylist"));
    let found = std::fs::metadata(folder.path().join("resources/http/2/e.org/001")).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o644);
    let stored: jiff::Timestamp = "2026-01-01T00:00:02Z".parse().unwrap();
    assert_eq!(found.mtime(), stored.as_second(), "a server's Last-Modified is the lastmod of the list");
    assert_eq!(std::fs::read_dir(folder.path().join(".thresher/tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.txt"), "mine").unwrap();
    let mut world = World::with(1, Policy::default()).await;
    let good = world.publication.clone();
    world.publication.place = directory(folder.path());
    let refused = |found: Result<_, PublishError>| match found {
        Err(PublishError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(world.try_publish().await).contains("not empty"));

    world.publication = good.clone();
    world.publish().await;
    world.publication.base = Base::new("https://other.example/".parse().unwrap()).unwrap();
    assert!(refused(world.try_publish().await).contains(BASE));
    world.publication = good.clone();
    let marker = SourceMarker::new("other".parse().unwrap(), "http://o.org/");
    world.publication.source = marker;
    assert!(refused(world.try_publish().await).contains("another Source"));
    world.publication = good;
    world.publication.with_bytes = false;
    assert!(refused(world.try_publish().await).contains("with bytes"));
}

#[tokio::test]
async fn two_processes_do_not_publish_to_one_directory() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::with(1, Policy::default()).await;
    world.publication.place = directory(folder.path());
    let lock = std::fs::File::create(folder.path().join(".thresher/publication.lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(world.try_publish().await, Err(PublishError::Busy(_))));
    lock.unlock().unwrap();
    world.publish().await;
}
