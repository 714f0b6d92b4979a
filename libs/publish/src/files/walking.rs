//! Takes what a walk meets: in turn, or with the walk on a thread of its own, which looks at the next files meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use tokio::runtime::Handle;

use super::walk::{Found, Walk};
use crate::PublishError;
use crate::scanned::Problems;

/// What is handed over together, at most: things that were met, and folders of theirs, which are open.
const TOGETHER: usize = 256;
const FOLDERS_TOGETHER: usize = 32;
/// How many of these wait. With the one in the making and the one that is taken, four are in memory.
const WAITING: usize = 2;

/// Walks on from where the walk has begun, and takes each thing that it meets.
///
/// # Errors
/// That of `take`, or [`PublishError::Stopped`].
pub(super) fn in_turn(
    walk: &mut Walk<'_>,
    problems: &mut Problems,
    stop: &AtomicBool,
    mut take: impl FnMut(Found) -> Result<(), PublishError>,
) -> Result<(), PublishError> {
    while let Some(found) = walk.next(problems) {
        if stop.load(Ordering::Relaxed) {
            return Err(PublishError::Stopped);
        }
        take(found)?;
    }
    Ok(())
}

/// The same in the same order, with the walk on a thread of its own. For a few files, that costs more than it saves.
///
/// # Errors
/// Those of [`in_turn`]. The thread has ended when this returns.
pub(super) fn beside(
    walk: &mut Walk<'_>,
    problems: &mut Problems,
    stop: &AtomicBool,
    mut take: impl FnMut(Found) -> Result<(), PublishError>,
) -> Result<(), PublishError> {
    let runtime = Handle::try_current().ok();
    thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel(WAITING);
        scope.spawn(move || {
            // What hears of changes goes by the clock of the runtime.
            let _entered = runtime.as_ref().map(Handle::enter);
            send(walk, problems, stop, &sender);
        });
        // Who leaves the loop drops the receiver, so that the walk does not wait for room.
        for batch in batches {
            for found in batch {
                if stop.load(Ordering::Relaxed) {
                    return Err(PublishError::Stopped);
                }
                take(found)?;
            }
        }
        // The walk itself may have ended early for that.
        if stop.load(Ordering::Relaxed) { Err(PublishError::Stopped) } else { Ok(()) }
    })
}

/// Hands over what a walk meets, until its end, or until nothing is taken any more.
fn send(walk: &mut Walk<'_>, problems: &mut Problems, stop: &AtomicBool, sender: &SyncSender<Vec<Found>>) {
    let mut batch = Batch::default();
    while let Some(found) = walk.next(problems) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        batch.push(found);
        if batch.is_full() && sender.send(std::mem::take(&mut batch).found).is_err() {
            return;
        }
    }
    // Without a receiver, the rest is of no use.
    let _ = sender.send(batch.found);
}

/// What is handed over together.
#[derive(Default)]
struct Batch {
    found: Vec<Found>,
    folders: usize,
}

impl Batch {
    fn push(&mut self, found: Found) {
        self.folders += usize::from(match (&found, self.found.last()) {
            (Found::File(file), Some(Found::File(last))) => !Arc::ptr_eq(&file.folder, &last.folder),
            (Found::File(_), _) => true,
            (Found::Unknown(_), _) => false,
        });
        self.found.push(found);
    }

    fn is_full(&self) -> bool {
        self.found.len() >= TOGETHER || self.folders >= FOLDERS_TOGETHER
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;
    use crate::scanned::Problem;

    /// Files enough that a walk waits for room: some folders of many, many of one, and some that are hidden.
    fn directory() -> (TempDir, usize) {
        let directory = tempfile::tempdir().unwrap();
        let many = (0..2_000).map(|number| format!("many{}/{number}", number % 3));
        let single = (0..500).map(|number| format!("single/{number}/file"));
        let hidden = (0..30).map(|number| format!("many1/.{number}"));
        for path in many.chain(single).chain(hidden) {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        (directory, 2_500)
    }

    fn begun(directory: &Path, problems: &mut Problems) -> Walk<'static> {
        let mut walk = Walk::new(directory, "https://e.org/files/", None, None).unwrap();
        walk.begin("", problems).unwrap();
        walk
    }

    fn path(found: Found) -> String {
        match found {
            Found::File(file) => file.path,
            Found::Unknown(path) => path,
        }
    }

    #[test]
    fn all_is_met_in_the_order_of_a_walk_with_its_problems() {
        let (directory, count) = directory();
        let met = |is_beside: bool| {
            let (mut problems, mut met) = (Problems::default(), Vec::new());
            let mut walk = begun(directory.path(), &mut problems);
            let stop = AtomicBool::new(false);
            let take = |found| {
                met.push(path(found));
                Ok(())
            };
            if is_beside {
                beside(&mut walk, &mut problems, &stop, take).unwrap();
            } else {
                in_turn(&mut walk, &mut problems, &stop, take).unwrap();
            }
            (met, problems)
        };
        let (expected, problems) = met(false);
        assert_eq!((expected.len(), problems.count(Problem::Hidden)), (count, 30));
        assert!(met(true) == (expected, problems));
    }

    #[test]
    fn few_folders_are_open_at_a_time() {
        let (directory, _) = directory();
        let mut problems = Problems::default();
        let mut walk = begun(directory.path(), &mut problems);
        let (sender, batches) = mpsc::sync_channel(1_000);
        send(&mut walk, &mut problems, &AtomicBool::new(false), &sender);
        drop(sender);
        for batch in batches {
            let folder = |found: &Found| match found {
                Found::File(file) => Arc::as_ptr(&file.folder),
                Found::Unknown(path) => panic!("{path}"),
            };
            let mut folders: Vec<_> = batch.iter().map(folder).collect();
            folders.dedup();
            assert!(batch.len() <= TOGETHER && folders.len() <= FOLDERS_TOGETHER, "{}", folders.len());
        }
    }

    #[test]
    fn a_walk_ends_when_it_is_to_stop() {
        let (directory, count) = directory();
        let mut problems = Problems::default();
        let mut walk = begun(directory.path(), &mut problems);
        let (stop, mut taken) = (AtomicBool::new(false), 0);
        let stopped = beside(&mut walk, &mut problems, &stop, |_| {
            taken += 1;
            stop.store(taken >= 10, Ordering::Relaxed);
            Ok(())
        });
        assert!(matches!(stopped, Err(PublishError::Stopped)), "{stopped:?}");
        assert_eq!(taken, 10, "of {count}");
    }

    #[test]
    fn an_error_ends_a_walk_that_waits_for_room() {
        let (directory, _) = directory();
        let mut problems = Problems::default();
        let mut walk = begun(directory.path(), &mut problems);
        let mut taken = 0;
        let failed = beside(&mut walk, &mut problems, &AtomicBool::new(false), |_| {
            taken += 1;
            Err(PublishError::Refused("a test".to_owned()))
        });
        assert!(matches!(failed, Err(PublishError::Refused(_))), "{failed:?}");
        assert_eq!(taken, 1);
        assert!(walk.next(&mut problems).is_some(), "it was not walked to its end");
    }
}
