//! A directory of files as a Source.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fixity::Sha256;
use object_store::ObjectStoreExt as _;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use publish::files::{FileRecords, Problem};
use publish::{Place, Policy, PublishError};

use crate::folder::Folder;
use crate::killed::Failing;
use crate::reader::{Follower, document, file};
use crate::world::{BASE, small};

#[tokio::test]
async fn files_are_followed_through_changes_and_deletions() {
    for policy in [small(), Policy::default()] {
        let mut folder = Folder::with(40, policy);
        let (done, scanned) = folder.publish().await;
        assert_eq!((done.resources, done.files, done.changes), (40, 40, 0));
        assert_eq!((scanned.files, scanned.read, scanned.created), (40, 40, 40));
        let mut reader = Follower::new(&folder.objects);
        reader.follow().await;
        assert_eq!(reader.held, folder.there());

        for round in 0..4 {
            folder.put("0/000.txt", &format!("round {round}"));
            folder.put(&format!("new/{round}"), "new");
            folder.remove(&format!("1/{:03}.txt", 1 + 3 * round));
            let (done, scanned) = folder.publish().await;
            assert_eq!((done.changes, done.files), (3, 2), "round {round}");
            assert_eq!((scanned.read, scanned.created, scanned.updated, scanned.deleted), (2, 1, 1, 1));
            reader.follow().await;
            assert_eq!(reader.held, folder.there(), "round {round}");
            let mut fresh = Follower::new(&folder.objects);
            fresh.follow().await;
            assert_eq!(fresh.held, folder.there(), "round {round}");
        }
        let (done, scanned) = folder.publish().await;
        assert_eq!(
            (done.documents, done.files, scanned.read),
            (0, 0, 0),
            "an idle run reads and writes nothing"
        );
    }
}

#[tokio::test]
async fn an_entry_has_the_file_and_no_link_to_an_original() {
    let mut folder = Folder::new(Policy::default());
    folder.put("so & so/Ä 100%.PDF", "odd");
    folder.publish().await;
    let list = document(&folder.objects, &format!("{BASE}resourcelist.xml")).await;
    let entry = &list.entries[0];
    assert_eq!(entry.loc, format!("{BASE}files/so%20%26%20so/%C3%84%20100%25.PDF"));
    assert_eq!(entry.metadata.media_type.as_deref(), Some("application/pdf"));
    assert_eq!(entry.lastmod.map(|time| time.to_string()).as_deref(), Some("2023-11-14T22:13:21Z"));
    assert!(entry.links.is_empty());
    assert_eq!(file(&folder.objects, &entry.loc).await, "odd");
    let page = file(&folder.objects, &format!("{BASE}index.html")).await;
    assert!(String::from_utf8_lossy(&page).contains(&format!("Resources at {BASE}files/")));
}

#[tokio::test]
async fn what_cannot_be_published_has_a_named_problem() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let mut folder = Folder::with(3, Policy::default());
    folder.put(".hidden", "hidden");
    folder.put(".git/config", "hidden");
    symlink(outside.path().join("secret"), folder.path("link")).unwrap();
    symlink(outside.path(), folder.path("folder")).unwrap();
    symlink("0/000.txt", folder.path("inside")).unwrap();
    fs::write(folder.path("").join(OsStr::from_bytes(b"caf\xe9")), "latin").unwrap();
    folder.put("line\nbreak", "control");
    let long = [&"n".repeat(250)[..]; 4].join("/");
    folder.put(&long, "long");
    let _socket = UnixListener::bind(folder.path("socket")).unwrap();
    let (done, scanned) = folder.publish().await;
    assert_eq!((done.resources, scanned.files), (3, 3));
    let found: Vec<_> = scanned.problems.iter().map(|(problem, count, _)| (problem, count)).collect();
    let expected = [
        (Problem::Hidden, 2),
        (Problem::SymbolicLink, 3),
        (Problem::SpecialFile, 1),
        (Problem::NameNotUtf8, 1),
        (Problem::ControlCharacter, 1),
        (Problem::TooLong, 1),
    ];
    assert_eq!(found, expected);
    assert_eq!(scanned.problems.failures(), 3);
    for path in
        ["files/link", "files/folder/secret", "files/.hidden", "files/../x", "files/", "files//x", "x"]
    {
        assert!(folder.files.open_at(path).unwrap().is_none(), "{path}");
    }
    assert!(folder.files.open_at("files/0/000.txt").unwrap().is_some());

    // A file in whose place a link is put is gone.
    folder.remove("0/000.txt");
    symlink(outside.path().join("secret"), folder.path("0/000.txt")).unwrap();
    let (_, scanned) = folder.publish().await;
    assert_eq!(scanned.deleted, 1);
}

#[tokio::test]
async fn folders_too_deep_are_told_and_their_files_left_out() {
    let mut folder = Folder::new(Policy::default());
    folder.put(&format!("{}file", "d/".repeat(99)), "deep");
    folder.put(&format!("{}file", "e/".repeat(100)), "too deep");
    let (done, scanned) = folder.publish().await;
    assert_eq!((done.resources, scanned.problems.count(Problem::TooDeep)), (1, 1));
}

#[tokio::test]
async fn an_unchanged_file_is_not_read_again_and_a_fresh_one_once_more() {
    let mut folder = Folder::with(5, Policy::default());
    fs::write(folder.path("fresh"), "one").unwrap();
    let time = fs::metadata(folder.path("fresh")).unwrap().modified().unwrap();
    assert_eq!(folder.publish().await.1.read, 6);
    // The same length, time and inode: only its bytes tell.
    let mut file = File::options().write(true).open(folder.path("fresh")).unwrap();
    std::io::Write::write_all(&mut file, b"two").unwrap();
    file.set_modified(time).unwrap();
    let (done, scanned) = folder.publish().await;
    assert_eq!((scanned.read, scanned.updated, done.changes), (1, 1, 1));
    let mut reader = Follower::new(&folder.objects);
    reader.follow().await;
    assert_eq!(reader.held, folder.there());
}

#[tokio::test]
async fn a_touched_file_is_read_and_nothing_is_told() {
    let mut folder = Folder::with(3, Policy::default());
    folder.publish().await;
    folder.put("0/000.txt", "body 0");
    let (done, scanned) = folder.publish().await;
    assert_eq!((scanned.read, scanned.updated, done.changes, done.documents), (1, 0, 0, 0));
    assert_eq!(folder.publish().await.1.read, 0);
}

#[tokio::test]
async fn a_directory_that_lost_more_than_half_is_not_published() {
    let mut folder = Folder::with(9, Policy::default());
    folder.publish().await;
    for number in 0..5 {
        folder.remove(&format!("{}/{number:03}.txt", number % 3));
    }
    let refused = folder.try_publish().await;
    assert!(matches!(refused, Err(PublishError::ManyDeleted { deleted: 5, before: 9, .. })), "{refused:?}");
    let mut reader = Follower::new(&folder.objects);
    reader.follow().await;
    assert_eq!(reader.held.len(), 9, "it is as before");
    folder.files = folder.files.allow_deletes(true);
    assert_eq!(folder.publish().await.0.changes, 5);
    reader.follow().await;
    assert_eq!(reader.held, folder.there());
}

#[tokio::test]
async fn everything_is_published_anew_when_the_digests_are_lost() {
    let mut folder = Folder::with(9, small());
    folder.publish().await;
    folder.objects.delete(&Key::from(".thresher/files.jsonl")).await.unwrap();
    folder.remove("0/000.txt");
    folder.publish().await;
    let mut fresh = Follower::new(&folder.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, folder.there());
    let gone = Key::from("files/0/000.txt");
    assert!(folder.objects.head(&gone).await.is_ok(), "readers of the old list get it");
    folder.passes(49);
    folder.publish().await;
    assert!(folder.objects.head(&gone).await.is_err());
    assert!(folder.objects.head(&Key::from("files/0/003.txt")).await.is_ok());
}

#[tokio::test]
async fn a_killed_scan_does_not_read_again_what_it_saved() {
    let failing = Failing::new();
    let mut folder = Folder::at(Arc::clone(&failing) as _, Policy::default());
    for number in 0..600 {
        folder.put(&format!("{number:03}"), &format!("body {number}"));
    }
    folder.files = folder.files.save_every(1);
    failing.left.store(2, Ordering::Relaxed);
    assert!(folder.try_publish().await.is_err());
    failing.left.store(i64::MAX, Ordering::Relaxed);
    let (done, scanned) = folder.publish().await;
    assert_eq!((scanned.read, done.resources), (600 - 512, 600));
    let mut reader = Follower::new(&folder.objects);
    reader.follow().await;
    assert_eq!(reader.held, folder.there());
}

#[tokio::test]
async fn a_publisher_of_files_killed_after_any_write_continues() {
    for writes in 0.. {
        let failing = Failing::new();
        let mut folder = Folder::at(Arc::clone(&failing) as _, small());
        for number in 0..8 {
            folder.put(&number.to_string(), &format!("body {number}"));
        }
        let mut reader = Follower::new(&folder.objects);
        let mut kills = 0;
        for round in 0..4 {
            failing.left.store(writes, Ordering::Relaxed);
            if folder.try_publish().await.is_err() {
                kills += 1;
                if round > 0 {
                    reader.follow_between().await;
                }
            }
            folder.put("1", &format!("round {round}"));
            failing.left.store(i64::MAX, Ordering::Relaxed);
            folder.publish().await;
            reader.follow().await;
            assert_eq!(reader.held, folder.there(), "killed after {writes}, round {round}");
            let mut fresh = Follower::new(&folder.objects);
            fresh.follow().await;
            assert_eq!(fresh.held, folder.there(), "killed after {writes}, round {round}");
            folder.put("2", &format!("then {round}"));
            folder.remove(&(3 + round).to_string());
            folder.put(&(10 + round).to_string(), "new");
            folder.put(&(3 + round).to_string(), "back");
            folder.remove(&(10 + round).to_string());
            folder.put(&(20 + round).to_string(), "new");
        }
        if kills == 0 {
            assert!(writes > 10, "{writes}");
            return;
        }
    }
}

fn directory(path: &Path) -> Place {
    Place::directory(path, Arc::new(LocalFileSystem::new_with_prefix(path).unwrap())).unwrap()
}

#[tokio::test]
async fn the_publication_may_be_inside_the_directory_but_not_around_it() {
    let mut folder = Folder::with(3, Policy::default());
    fs::create_dir(folder.path("rs")).unwrap();
    let place = directory(&folder.path("rs"));
    let url = "https://mirror.example/".parse().unwrap();
    folder.files = FileRecords::new(&folder.path(""), &url, &place).unwrap();
    folder.publication.place = place.clone();
    folder.publication.with_bytes = false;
    assert_eq!(folder.publish().await.0.resources, 3);
    assert_eq!(folder.publish().await.1.files, 3, "its documents are no files");
    let list = fs::read_to_string(folder.path("rs/resourcelist.xml")).unwrap();
    assert!(list.contains("<loc>https://mirror.example/0/000.txt</loc>"), "{list}");

    let around = directory(&folder.path(""));
    let refused = FileRecords::new(&folder.path("0"), &url, &around);
    assert!(matches!(refused, Err(PublishError::Refused(_))));
    assert!(FileRecords::new(&folder.path("nowhere"), &url, &place).is_err());
}

#[tokio::test]
async fn an_open_file_has_its_digest_if_it_is_as_it_was_scanned() {
    let mut folder = Folder::with(300, Policy::default());
    fs::write(folder.path("fresh"), "fresh").unwrap();
    let open = |folder: &Folder, path: &str| {
        let open = folder.files.open_at(&format!("files/{path}")).unwrap().unwrap();
        assert_eq!(open.sha256.is_some(), open.etag.len() == 66, "{}", open.etag);
        open.sha256
    };
    assert_eq!(open(&folder, "0/000.txt"), None, "nothing is scanned yet");
    folder.publish().await;
    for number in 0..300 {
        let sha256 = open(&folder, &format!("{}/{number:03}.txt", number % 3));
        assert_eq!(sha256, Some(Sha256::of(format!("body {number}").as_bytes())));
    }
    assert_eq!(open(&folder, "fresh"), None, "a later write may have the same time");
    folder.put("0/000.txt", "BODY 0");
    folder.put("new", "new");
    assert_eq!((open(&folder, "0/000.txt"), open(&folder, "new")), (None, None));
    folder.publish().await;
    assert_eq!(open(&folder, "0/000.txt"), Some(Sha256::of(b"BODY 0")));
    assert_eq!(open(&folder, "new"), Some(Sha256::of(b"new")));
}
