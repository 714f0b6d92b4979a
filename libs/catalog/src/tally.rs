//! Counts reads and writes of a catalog, so that a test can check that work does not grow where it should
//! not.

use std::sync::atomic::{AtomicU64, Ordering};

/// Reads and writes of a catalog since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LookupCounts {
    /// Records that were looked up, each by its key.
    pub looked_up: u64,
    /// Batches that were committed.
    pub commits: u64,
    /// Rows of the database that they changed: one per record, or per page of the change log.
    pub written: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    looked_up: AtomicU64,
    commits: AtomicU64,
    written: AtomicU64,
}

impl Tally {
    pub(crate) fn look_up(&self) {
        self.looked_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a batch and its changed rows.
    pub(crate) fn commit(&self, rows: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.written.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self) -> LookupCounts {
        LookupCounts {
            looked_up: self.looked_up.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
        }
    }
}
