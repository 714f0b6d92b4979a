//! Events of a real kernel, and some that are made up.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use tempfile::TempDir;
use testkit::waiting::until;

use super::*;
use crate::files::beneath;
use crate::files::kernel::Event;

/// A directory with some folders, all of which are watched.
struct Case {
    directory: TempDir,
    heard: Heard,
}

impl Case {
    async fn with(folders: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let case = Self { directory, heard: Heard::new(Kernel::begin().unwrap(), 100) };
        case.watch("");
        for folder in folders {
            fs::create_dir(case.at(folder)).unwrap();
            case.watch(folder);
        }
        // What is heard of these is not to be heard of later.
        until("the folders are heard of", || {
            case.heard.read();
            folders.iter().all(|folder| case.heard.state().looks.contain(folder))
        })
        .await;
        case.heard.take().unwrap();
        case
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn watch(&self, path: &str) {
        self.heard.add(beneath::root(&self.at(path)).unwrap().as_fd(), path);
    }

    /// Waits until exactly these paths changed.
    #[track_caller]
    fn hears(&self, paths: &[&str]) -> impl Future<Output = ()> {
        until(format!("{paths:?} changed"), move || {
            self.heard.read();
            self.heard.state().looks.iter().eq(paths.iter().copied())
        })
    }
}

#[tokio::test]
async fn what_changes_is_heard_of_by_its_path() {
    let case = Case::with(&["a", "b"]).await;
    fs::write(case.at("a/file"), "1").unwrap();
    fs::write(case.at("a/.hidden"), "1").unwrap();
    fs::write(case.at("a/line\nbreak"), "1").unwrap();
    case.hears(&["a/file"]).await;
    fs::rename(case.at("a/file"), case.at("b/other")).unwrap();
    case.hears(&["a/file", "b/other"]).await;
    case.heard.take().unwrap();
    fs::remove_file(case.at("b/other")).unwrap();
    fs::create_dir_all(case.at("c/d/e")).unwrap();
    case.hears(&["b/other", "c"]).await;
    fs::remove_dir(case.at("b")).unwrap();
    case.hears(&["b", "c"]).await;
    assert_eq!(case.heard.folders(), 2, "the root and a");
    assert_eq!(case.heard.unheard(), None);
}

#[tokio::test]
async fn a_folder_that_was_moved_is_not_known_by_its_old_path() {
    let case = Case::with(&["a", "a/b", "c"]).await;
    fs::rename(case.at("a"), case.at("c/d")).unwrap();
    case.hears(&["a", "c/d"]).await;
    assert_eq!(case.heard.folders(), 2, "the root and c");
    case.watch("c/d");
    case.watch("c/d/b");
    case.heard.take().unwrap();
    fs::write(case.at("c/d/b/file"), "1").unwrap();
    case.hears(&["c/d/b/file"]).await;
}

#[tokio::test]
async fn a_folder_that_is_met_at_its_new_path_before_its_move_is_heard_of_stays_watched() {
    let case = Case::with(&["a"]).await;
    fs::rename(case.at("a"), case.at("b")).unwrap();
    case.watch("b");
    case.hears(&["a", "b"]).await;
    case.heard.take().unwrap();
    fs::write(case.at("b/file"), "1").unwrap();
    case.hears(&["b/file"]).await;
}

#[tokio::test]
async fn the_end_of_the_directory_is_heard_of() {
    let case = Case::with(&["a"]).await;
    let away = tempfile::tempdir().unwrap();
    fs::rename(case.directory.path(), away.path().join("away")).unwrap();
    until("it is gone", || {
        case.heard.read();
        case.heard.unheard() == Some(Unheard::Gone)
    })
    .await;
    assert_eq!(case.heard.take(), Err(Unheard::Gone));
}

#[tokio::test]
async fn more_folders_than_are_watched_end_it() {
    let case = Case::with(&["a", "b"]).await;
    let heard = Heard::new(Kernel::begin().unwrap(), 2);
    for (path, unheard) in [("", None), ("a", None), ("a", None), ("b", Some(Unheard::TooManyFolders))] {
        heard.add(beneath::root(&case.at(path)).unwrap().as_fd(), path);
        assert_eq!(heard.unheard(), unheard, "{path}");
    }
    assert_eq!(heard.folders(), 0);
}

#[test]
fn what_the_kernel_lost_ends_it_and_the_first_reason_stays() {
    let (mut state, mut moved) = (State::default(), Looks::default());
    state.add(1, "");
    state.hear(Event::Changed(1, b"a"), &mut moved);
    assert!(state.looks.contain("a"));
    state.hear(Event::Overflow, &mut moved);
    state.hear(Event::Unmounted, &mut moved);
    state.hear(Event::Changed(1, b"b"), &mut moved);
    assert_eq!(state.unheard, Some(Unheard::Overflow));
    assert!(state.looks.is_empty() && state.folders.is_empty());
}

#[test]
fn more_changes_than_are_noted_end_it() {
    let (mut state, mut moved) = (State { looks: Looks::at_most(2), ..State::default() }, Looks::default());
    state.add(1, "folder");
    for name in ["a", "b", "b"] {
        state.hear(Event::Changed(1, name.as_bytes()), &mut moved);
        assert_eq!(state.unheard, None);
    }
    state.hear(Event::Changed(1, b"c"), &mut moved);
    assert_eq!(state.unheard, Some(Unheard::TooManyChanges));
}

#[test]
fn a_folder_at_two_paths_is_heard_of_at_both() {
    let (mut state, mut moved) = (State::default(), Looks::default());
    state.add(1, "one");
    state.add(1, "two");
    state.add(1, "two");
    state.hear(Event::Changed(1, b"a"), &mut moved);
    assert_eq!(state.looks.iter().collect::<Vec<_>>(), ["one/a", "two/a"]);
    moved.insert("one");
    state.forget_below(&moved);
    assert!(state.over.is_empty() && state.paths == 1);
    moved.insert("two");
    state.forget_below(&moved);
    assert_eq!((state.over, state.paths), (vec![1], 0));
}

#[tokio::test(start_paused = true)]
async fn a_scan_waits_for_quiet_but_not_for_ever() {
    let (second, longest) = (Duration::from_secs(1), Duration::from_secs(5));
    let heard = Heard::new(Kernel::begin().unwrap(), 10);
    let change = || {
        heard.state().add(1, "");
        heard.state().hear(Event::Changed(1, b"a"), &mut Looks::default());
        heard.settle(&mut heard.state());
    };
    let waits = async |every: Duration, changes: u32| {
        let begun = Instant::now();
        let writes = async {
            for _ in 0..changes {
                change();
                sleep(every).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = heard.quiet(second, longest) => {}
            () = writes => {}
        }
        heard.take().unwrap();
        // Timers are exact to a millisecond.
        begun.elapsed().as_millis() / 10 * 10
    };
    assert_eq!(waits(Duration::from_millis(900), 3).await, 1_800 + 1_000);
    assert_eq!(waits(Duration::from_millis(900), 100).await, 5_000);
    assert_eq!(waits(Duration::from_secs(2), 2).await, 1_000);
}
