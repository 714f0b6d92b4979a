//! A directory whose changes are heard of from the system.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use publish::files::{Unheard, Watching};
use publish::{Policy, PublishError};
use testkit::waiting::LONGEST_WAIT;
use tokio::time::timeout;

use crate::folder::Folder;
use crate::reader::Follower;

/// Nothing is scanned only because this time has passed.
const FAR: Duration = Duration::from_secs(86_400);
const AT_ONCE: Duration = Duration::from_millis(1);

struct Watched {
    folder: Folder,
    reader: Follower,
}

impl Watched {
    async fn with(files: usize) -> Self {
        let mut folder = Folder::with(files, Policy::default());
        let now = Duration::ZERO;
        folder.files =
            folder.files.watched(Watching { quiet: now, longest_wait: now, ..Watching::default() });
        let (_, scanned) = folder.publish().await;
        assert_eq!((scanned.looks, scanned.unheard), (None, None));
        let mut reader = Follower::new(&folder.objects);
        reader.follow().await;
        Self { folder, reader }
    }

    /// Publishes what is heard of, until a reader has it. Nothing else is looked at.
    async fn catches_up(&mut self) {
        let looks = async {
            let mut files = None;
            while self.reader.held != self.folder.there() {
                self.folder.files.due(Duration::ZERO, FAR).await;
                let (_, scanned) = self.folder.publish().await;
                assert!(scanned.looks.is_some_and(|looks| looks < 20), "{scanned:?}");
                files = Some(scanned.files);
                self.reader.follow().await;
            }
            files
        };
        let files = timeout(LONGEST_WAIT, looks).await.expect("what changed is published");
        assert_eq!(files, Some(self.reader.held.len() as u64));
    }
}

#[tokio::test]
async fn files_that_are_written_renamed_and_removed_are_told() {
    let mut watched = Watched::with(40).await;
    watched.folder.put("0/000.txt", "other");
    watched.catches_up().await;
    fs::rename(watched.folder.path("0/003.txt"), watched.folder.path("1/renamed.txt")).unwrap();
    watched.catches_up().await;
    watched.folder.remove("1/001.txt");
    watched.catches_up().await;
    watched.folder.put("top.txt", "new");
    watched.folder.put("2/002.txt", "and another one");
    watched.catches_up().await;
}

#[tokio::test]
async fn a_new_tree_is_told_and_what_changes_in_it_later() {
    let mut watched = Watched::with(3).await;
    for path in ["new/a/b/c/file", "new/a/file", "new/file"] {
        watched.folder.put(path, "new");
    }
    watched.catches_up().await;
    watched.folder.put("new/a/b/c/file", "changed");
    watched.folder.put("new/a/b/other", "new");
    watched.catches_up().await;
    fs::remove_dir_all(watched.folder.path("new/a")).unwrap();
    watched.catches_up().await;
}

#[tokio::test]
async fn folders_that_are_moved_are_followed() {
    let mut watched = Watched::with(9).await;
    watched.folder.put("0/deep/file", "deep");
    watched.catches_up().await;
    fs::rename(watched.folder.path("0"), watched.folder.path("moved")).unwrap();
    watched.catches_up().await;
    watched.folder.put("moved/deep/file", "changed");
    watched.folder.put("moved/deep/other", "new");
    watched.catches_up().await;

    // Out, changed there, and in again.
    let away = tempfile::tempdir().unwrap();
    fs::rename(watched.folder.path("moved"), away.path().join("moved")).unwrap();
    watched.catches_up().await;
    fs::write(away.path().join("moved/deep/file"), "changed outside").unwrap();
    fs::rename(away.path().join("moved"), watched.folder.path("back")).unwrap();
    watched.catches_up().await;
    watched.folder.put("back/deep/other", "changed");
    watched.catches_up().await;
}

#[tokio::test]
async fn a_directory_that_is_removed_and_made_again_is_scanned_and_heard_of_again() {
    let mut watched = Watched::with(9).await;
    let away = tempfile::tempdir().unwrap();
    let root = watched.folder.path("");
    fs::rename(&root, away.path().join("root")).unwrap();
    timeout(LONGEST_WAIT, watched.folder.files.due(Duration::ZERO, AT_ONCE)).await.expect("it is due");
    let refused = watched.folder.try_publish().await;
    assert!(matches!(refused, Err(PublishError::Directory(..))), "{refused:?}");

    fs::create_dir(&root).unwrap();
    let refused = watched.folder.try_publish().await;
    assert!(matches!(refused, Err(PublishError::ManyDeleted { deleted: 9, .. })), "{refused:?}");
    for number in 0..9 {
        watched.folder.put(&format!("{}/{number:03}.txt", number % 3), &format!("made again {number}"));
    }
    let (done, scanned) = watched.folder.publish().await;
    assert_eq!((done.changes, scanned.looks, scanned.unheard), (9, None, None));
    watched.reader.follow().await;
    watched.folder.put("0/000.txt", "other");
    watched.catches_up().await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_watched_is_scanned_at_each_interval() {
    let mut folder = Folder::with(9, Policy::default());
    let most_folders = 3;
    folder.files = folder.files.watched(Watching { most_folders, ..Watching::default() });
    let (_, scanned) = folder.publish().await;
    assert_eq!((scanned.unheard, scanned.watched), (Some(Unheard::TooManyFolders), 0));
    folder.put("0/000.txt", "other");
    timeout(LONGEST_WAIT, folder.files.due(Duration::ZERO, AT_ONCE)).await.expect("the interval is over");
    let (done, scanned) = folder.publish().await;
    assert_eq!((done.changes, scanned.looks, scanned.unheard), (1, None, None), "it is told once");
}

#[tokio::test]
async fn what_is_young_is_looked_at_again_after_the_interval() {
    let mut watched = Watched::with(3).await;
    fs::write(watched.folder.path("young"), "young").unwrap();
    watched.catches_up().await;
    // Nothing more is heard of it.
    timeout(LONGEST_WAIT, watched.folder.files.due(Duration::ZERO, AT_ONCE)).await.expect("it is due");
    let (done, scanned) = watched.folder.publish().await;
    assert_eq!((scanned.looks, scanned.read, done.changes), (Some(1), 1, 0));
}

#[tokio::test]
async fn the_publication_may_be_inside_the_directory() {
    let mut watched = Watched::with(3).await;
    // Its documents are no changes: else it would be published for ever.
    let root = watched.folder.path("");
    fs::create_dir(root.join("rs")).unwrap();
    let place = publish::Place::directory(
        &root.join("rs"),
        std::sync::Arc::new(object_store::local::LocalFileSystem::new_with_prefix(root.join("rs")).unwrap()),
    );
    let (url, place) = ("https://mirror.example/".parse().unwrap(), place.unwrap());
    let files = publish::files::FileRecords::new(&root, &url, &place).unwrap();
    let now = Duration::ZERO;
    watched.folder.files = files.watched(Watching { quiet: now, longest_wait: now, ..Watching::default() });
    watched.folder.publication.place = place;
    watched.folder.publication.with_bytes = false;
    watched.folder.publish().await;
    watched.folder.put("0/000.txt", "other");
    let mut told = 0;
    while told == 0 {
        let due = watched.folder.files.due(Duration::ZERO, FAR);
        timeout(LONGEST_WAIT, due).await.expect("the change is heard of");
        let (done, scanned) = watched.folder.publish().await;
        assert!(scanned.looks.is_some());
        told = done.changes;
    }
    assert_eq!((told, watched.folder.publish().await.1.looks), (1, Some(0)));
}
