//! What was read and waits to be laid beside the catalog, and what was counted of it.

use std::sync::Arc;

use model::{RunRecord, SetId};

use crate::beside::Words;
use crate::document::ReadDocument;

/// What was read and waits to be laid beside the catalog.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    pub(super) words: Option<Words>,
    /// How many of them ask for something.
    pub(super) asking: u64,
    /// The documents that words come from, with their sets.
    pub(super) documents: Vec<(Arc<str>, SetId)>,
    /// Documents that were read to their end.
    pub(super) read: Vec<ReadDocument>,
    /// There was no room: what is read in this process is planned at once.
    pub(super) is_broken: bool,
}

/// What was counted of documents that the catalog does not know as read: after a crash they are counted again.
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

    pub(super) fn words(&mut self) -> &mut Words {
        self.words.get_or_insert_with(Words::new)
    }

    /// Whether a document was read and is not known as read yet.
    pub(crate) fn holds(&self, document: &str) -> bool {
        self.read.iter().any(|read| read.uri == document)
    }

    /// Whether anything in it asks to be decided about.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking > 0 || !self.read.is_empty()
    }
}

impl Ahead {
    /// The run as it is to be known after a crash.
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

    /// With what was counted since `before`.
    pub(super) fn with(self, before: Self, now: Self) -> Self {
        Self {
            listed: self.listed + now.listed.saturating_sub(before.listed),
            unchanged: self.unchanged + now.unchanged.saturating_sub(before.unchanged),
            ignored: self.ignored + now.ignored.saturating_sub(before.ignored),
            failed: self.failed + now.failed.saturating_sub(before.failed),
        }
    }
}
