//! Entries that wait for the merge join, and their counters.

use reconcile::EntrySorter;
use std::sync::Arc;

use model::{RunRecord, SetId};

use crate::document::ReadDocument;

/// Entries that wait for the merge join.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    pub(super) words: Option<EntrySorter>,
    /// Number of entries that need a decision.
    pub(super) asking: u64,
    /// The documents of the words, with their sets.
    pub(super) documents: Vec<(Arc<str>, SetId)>,
    /// Documents that were read to their end.
    pub(super) read: Vec<ReadDocument>,
    /// The disk was full: this process plans further entries at once.
    pub(super) is_broken: bool,
}

/// Counters of documents that are not recorded as read yet. After a crash they are counted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ahead {
    pub(super) listed: u64,
    pub(super) unchanged: u64,
    pub(super) ignored: u64,
    pub(super) failed: u64,
}

impl Spool {
    /// The number of a document.
    pub(super) fn number(&mut self, document: &str, set: &SetId) -> usize {
        let is_last = |(last, of): &(Arc<str>, SetId)| **last == *document && of == set;
        if !self.documents.last().is_some_and(is_last) {
            self.documents.push((document.into(), set.clone()));
        }
        self.documents.len() - 1
    }

    pub(super) fn words(&mut self) -> &mut EntrySorter {
        self.words.get_or_insert_with(EntrySorter::new)
    }

    /// Whether a document was read, but is not recorded as read yet.
    pub(crate) fn holds(&self, document: &str) -> bool {
        self.read.iter().any(|read| read.uri == document)
    }

    /// Whether any entry needs a decision.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking > 0 || !self.read.is_empty()
    }
}

impl Ahead {
    /// The run's record without these counters, for use after a crash.
    pub(crate) fn taken_from(self, run: &RunRecord) -> RunRecord {
        let mut run = run.clone();
        let counters = &mut run.counters;
        counters.listed = counters.listed.saturating_sub(self.listed);
        counters.unchanged = counters.unchanged.saturating_sub(self.unchanged);
        counters.ignored = counters.ignored.saturating_sub(self.ignored);
        counters.failed = counters.failed.saturating_sub(self.failed);
        run
    }

    pub(super) fn of(run: &RunRecord) -> Self {
        let counters = &run.counters;
        Self {
            listed: counters.listed,
            unchanged: counters.unchanged,
            ignored: counters.ignored,
            failed: counters.failed,
        }
    }

    /// Adds what was counted between `before` and `now`.
    pub(super) fn with(self, before: Self, now: Self) -> Self {
        Self {
            listed: self.listed + now.listed.saturating_sub(before.listed),
            unchanged: self.unchanged + now.unchanged.saturating_sub(before.unchanged),
            ignored: self.ignored + now.ignored.saturating_sub(before.ignored),
            failed: self.failed + now.failed.saturating_sub(before.failed),
        }
    }
}
