//! Computes digests of files, several at a time.

use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fixity::{Hasher, Sha256};
use jiff::Timestamp;

use super::beneath;
use super::stamp::Stamp;

/// The most threads.
const MOST_THREADS: usize = 4;
/// How much is read at a time.
const PIECE_BYTES: usize = 256 * 1024;
/// A file modified this short before it was read is read once more: a later write may have the same time. Some file
/// systems keep times in steps of two seconds.
const UNSURE_NANOSECONDS: i64 = 2_000_000_000;

/// A file to read: the folder it is in, and its name.
#[derive(Debug, Clone)]
pub(super) struct ToHash {
    pub(super) folder: Arc<OwnedFd>,
    pub(super) name: String,
}

/// What was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hashed {
    pub(super) stamp: Stamp,
    pub(super) sha256: Sha256,
    /// Whether its time does not tell later writes from this one.
    pub(super) is_unsure: bool,
}

/// Why a file has no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotHashed {
    Gone,
    Changing,
    Unreadable,
    Stopped,
}

/// Reads files, and returns their results in the same order.
pub(super) fn hash_all(files: &[ToHash], stop: &AtomicBool) -> Vec<Result<Hashed, NotHashed>> {
    let threads =
        thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS).min(files.len());
    if threads <= 1 {
        return files.iter().map(|file| hash(file, stop)).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![Err(NotHashed::Stopped); files.len()]);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(at) else { return };
                    let hashed = hash(file, stop);
                    if let Ok(mut done) = done.lock() {
                        done[at] = hashed;
                    }
                }
            });
        }
    });
    done.into_inner().unwrap_or_default()
}

fn hash(file: &ToHash, stop: &AtomicBool) -> Result<Hashed, NotHashed> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => NotHashed::Gone,
        _ => NotHashed::Unreadable,
    };
    let begin = Timestamp::now();
    let (mut open, stamp) = beneath::file(&file.folder, &file.name).map_err(failed)?;
    let sha256 = read(&mut open, stamp.length, stop)?;
    let after = open.metadata().map_err(failed)?;
    if Stamp::of(&after) != stamp {
        return Err(NotHashed::Changing);
    }
    let begin = i64::try_from(begin.as_nanosecond()).unwrap_or(i64::MAX);
    Ok(Hashed { stamp, sha256, is_unsure: stamp.modified > begin - UNSURE_NANOSECONDS })
}

/// The digest of a file that must have this length.
fn read(file: &mut File, length: u64, stop: &AtomicBool) -> Result<Sha256, NotHashed> {
    let mut hasher = Hasher::new([]);
    // A small file needs a small buffer only; one byte more shows whether it grew.
    let room = usize::try_from(length).unwrap_or(PIECE_BYTES).saturating_add(1).min(PIECE_BYTES);
    let mut piece = vec![0; room];
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(NotHashed::Stopped);
        }
        let count = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(NotHashed::Unreadable),
        };
        hasher.update(&piece[..count]);
        if hasher.length() > length {
            return Err(NotHashed::Changing);
        }
    }
    if hasher.length() != length {
        return Err(NotHashed::Changing);
    }
    Ok(hasher.finish().sha256())
}
