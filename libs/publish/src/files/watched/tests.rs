//! Plans of scans, and when they are due.

use std::fs;
use std::os::fd::AsFd as _;

use tokio::time::advance;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

fn watched(directory: &std::path::Path, most_folders: usize) -> Watched {
    Watched::new(directory.to_owned(), Watching { most_folders, ..Watching::default() })
}

fn looks(paths: &[&str]) -> Looks {
    let mut looks = Looks::default();
    for path in paths {
        looks.insert(path);
    }
    looks
}

/// A scan without further work, after which these are to be looked at again.
fn scanned(watched: &Watched, again: &[&str]) -> (Looks, Option<Unheard>) {
    let plan = watched.plan(true);
    let looked_at = plan.looks.clone();
    (looked_at, watched.done(plan, looks(again)))
}

#[tokio::test(start_paused = true)]
async fn everything_is_scanned_at_first_after_a_failure_and_after_an_hour() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched(directory.path(), 10);
    assert_eq!(scanned(&watched, &["young"]), (Looks::all(), None));
    assert_eq!(scanned(&watched, &[]), (looks(&["young"]), None));
    assert_eq!(scanned(&watched, &[]), (looks(&[]), None));
    // It failed.
    drop(watched.plan(true));
    assert_eq!(scanned(&watched, &["a", "b"]), (Looks::all(), None));
    // The rows are those of another process.
    let plan = watched.plan(false);
    assert!(plan.looks.are_all());
    watched.done(plan, looks(&[]));
    advance(HOUR - MINUTE).await;
    assert_eq!(scanned(&watched, &[]), (looks(&[]), None));
    advance(MINUTE).await;
    assert_eq!(scanned(&watched, &[]), (Looks::all(), None));
    // Another directory is at its path.
    fs::rename(directory.path(), directory.path().with_extension("away")).unwrap();
    fs::create_dir(directory.path()).unwrap();
    assert_eq!(scanned(&watched, &[]), (Looks::all(), None));
    assert_eq!(scanned(&watched, &[]), (looks(&[]), None));
    fs::remove_dir(directory.path().with_extension("away")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn too_many_folders_are_told_once_and_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched(directory.path(), 1);
    let scan = || {
        let plan = watched.plan(true);
        let heard = plan.heard();
        if let Some(heard) = &heard {
            for path in ["", "a"] {
                heard.add(crate::files::beneath::root(directory.path()).unwrap().as_fd(), path);
            }
        }
        assert!(plan.looks.are_all());
        (heard.is_some(), watched.done(plan, Looks::default()))
    };
    assert_eq!(scan(), (true, Some(Unheard::TooManyFolders)));
    assert_eq!(scan(), (false, None));
    advance(HOUR).await;
    assert_eq!(scan(), (true, None));
    assert_eq!(scan(), (false, None));
}

#[tokio::test(start_paused = true)]
async fn after_events_were_lost_everything_is_scanned_and_heard_of_again() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched(directory.path(), 10);
    for told in [Some(Unheard::Overflow), None] {
        let plan = watched.plan(true);
        let heard = plan.heard().unwrap();
        watched.done(plan, Looks::default());
        heard.end(Unheard::Overflow);
        // Not at once: while more is lost all the time, it is scanned as without a watch.
        assert_eq!(waits(&watched, Duration::ZERO).await, 60);
        assert_eq!(scanned(&watched, &[]), (Looks::all(), told));
    }
    assert_eq!(scanned(&watched, &[]), (looks(&[]), None));
}

/// How many seconds it takes until a scan is due, after each minute.
async fn waits(watched: &Watched, rest: Duration) -> u64 {
    let begun = Instant::now();
    watched.due(rest, MINUTE).await;
    begun.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_scan_is_due_by_time_if_there_is_something_to_look_at() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched(directory.path(), 10);
    assert_eq!(waits(&watched, Duration::ZERO).await, 60, "nothing is scanned yet");
    assert_eq!(waits(&watched, 2 * MINUTE).await, 120);
    scanned(&watched, &["young"]);
    assert_eq!(waits(&watched, Duration::ZERO).await, 60);
    scanned(&watched, &[]);
    // All of it is due an hour after the first scan.
    let waited = waits(&watched, Duration::ZERO).await;
    assert!((3_480..=3_600).contains(&waited), "{waited}");
}
