//! What tells that a file is unchanged without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use jiff::Timestamp;
use rustix::fs::Stat;

/// Length, time and inode of a file. A file with the same ones is not read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Bytes.
    pub(super) length: u64,
    /// The time of its last modification, in nanoseconds since 1970.
    pub(super) modified: i64,
    /// Its inode: a file that replaces another one has its own.
    pub(super) inode: u64,
}

impl Stamp {
    pub(super) fn of(found: &Metadata) -> Self {
        Self {
            length: found.size(),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
            inode: found.ino(),
        }
    }

    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(super) fn of_stat(found: &Stat) -> Self {
        Self {
            length: u64::try_from(found.st_size).unwrap_or_default(),
            modified: nanoseconds(found.st_mtime as i64, found.st_mtime_nsec as i64),
            inode: found.st_ino as u64,
        }
    }

    /// The Last-Modified of the file, in whole seconds.
    pub(super) fn time(&self) -> Timestamp {
        Timestamp::from_second(self.modified.div_euclid(1_000_000_000)).unwrap_or_default()
    }

    /// An entity tag: another version of the file has another one.
    pub(super) fn etag(&self) -> String {
        format!("\"{:x}-{:x}-{:x}\"", self.modified, self.length, self.inode)
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
