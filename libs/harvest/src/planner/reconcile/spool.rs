//! Entries that wait for the merge join.

use std::sync::Arc;

use model::SetId;
use reconcile::EntrySorter;

use crate::planner::document::ReadDocument;

/// Entries that wait for the merge join.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    pub(crate) entries: Option<EntrySorter>,
    /// Number of entries that need a decision.
    pub(crate) undecided: u64,
    /// The documents of the entries, with their sets.
    pub(crate) documents: Vec<(Arc<str>, SetId)>,
    /// Documents that were read to their end.
    pub(crate) read: Vec<ReadDocument>,
    /// The disk was full: this process plans further entries at once.
    pub(crate) is_broken: bool,
}

impl Spool {
    /// The number of a document.
    pub(crate) fn number(&mut self, document: &str, set: &SetId) -> usize {
        let is_last = |(last, of): &(Arc<str>, SetId)| **last == *document && of == set;
        if !self.documents.last().is_some_and(is_last) {
            self.documents.push((document.into(), set.clone()));
        }
        self.documents.len() - 1
    }

    pub(crate) fn entries(&mut self) -> &mut EntrySorter {
        self.entries.get_or_insert_with(EntrySorter::new)
    }

    /// Whether a document was read, but is not recorded as read yet.
    pub(crate) fn holds(&self, document: &str) -> bool {
        self.read.iter().any(|read| read.uri == document)
    }

    /// Whether any entry needs a decision.
    pub(crate) fn has_entries(&self) -> bool {
        self.undecided > 0 || !self.read.is_empty()
    }
}
