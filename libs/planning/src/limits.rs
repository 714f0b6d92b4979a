//! Limits on how much a run reads of its Source's documents. Strangers write them, perhaps without end.

use std::fmt;

use model::ProblemReason;
use resourcesync::{LimitKind, Options, ReadError};
use serde::Deserialize;

/// Limits on how much a run reads of its Source's documents.
///
/// The defaults allow 300 million entries in lists of 50,000, more than the largest Sources known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunLimits {
    /// Nested indexes. With 3, a list below an index below an index below an index is read.
    pub index_levels: u32,
    /// Documents that are read: lists, dumps, change documents, and their indexes.
    pub documents: u64,
    /// Entries that are read, of all documents together.
    pub entries: u64,
    /// Bytes of all documents together, after decompression.
    pub document_bytes: u64,
    /// Maximum ratio of a document's decompressed size to its compressed size.
    pub inflation: u64,
    /// Links that are followed, of all entries together.
    pub links: u64,
}

/// Amounts that a run has read so far, in this process.
#[derive(Debug, Default)]
pub struct ReadBudget {
    /// Documents that were read.
    documents: u64,
    /// Documents that were queued because an index listed them.
    queued: u64,
    entries: u64,
    bytes: u64,
    links: u64,
}

/// A limit of a run that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    /// More nested indexes than this.
    IndexLevels(u32),
    /// More documents than this.
    Documents(u64),
    /// More entries than this, of all documents together.
    Entries(u64),
    /// More bytes than this, of all documents together.
    DocumentBytes(u64),
    /// A document inflates to more than this number of times its compressed size.
    Inflation(u64),
    /// More links that lead to resources than this, of all entries together.
    Links(u64),
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            index_levels: 3,
            documents: 100_000,
            entries: 500_000_000,
            document_bytes: 512 << 30,
            inflation: 500,
            links: 100_000_000,
        }
    }
}

impl RunLimits {
    /// The limit that stopped the reading of a document, if it is one of the run.
    pub fn met_by(&self, error: &ReadError) -> Option<LimitReached> {
        match error {
            ReadError::Limit { limit: LimitKind::DocumentBytes(_), .. } => {
                Some(LimitReached::DocumentBytes(self.document_bytes))
            }
            ReadError::Limit { limit: LimitKind::Inflation(_), .. } => {
                Some(LimitReached::Inflation(self.inflation))
            }
            _ => None,
        }
    }
}

impl ReadBudget {
    /// Adds documents that an earlier process queued.
    pub fn with_queued(self, queued: u64) -> Self {
        Self { queued, ..self }
    }

    /// The limit that forbids reading another document, if any.
    pub fn begin_document(&mut self, limits: &RunLimits) -> Option<LimitReached> {
        if self.documents >= limits.documents {
            return Some(LimitReached::Documents(limits.documents));
        }
        if self.entries >= limits.entries {
            return Some(LimitReached::Entries(limits.entries));
        }
        if self.bytes >= limits.document_bytes {
            return Some(LimitReached::DocumentBytes(limits.document_bytes));
        }
        None
    }

    /// Options for reading the next document: within the remaining bytes of the run.
    pub fn options(&self, limits: &RunLimits, mut options: Options) -> Options {
        let left = limits.document_bytes.saturating_sub(self.bytes);
        options.limits.max_document_bytes = Some(left);
        options.limits.max_inflation = limits.inflation;
        options
    }

    /// Counts a document of `bytes` bytes.
    pub fn end_document(&mut self, bytes: u64) {
        self.documents += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Takes entries up to the limit. The rest is dropped.
    pub fn take_entries<T>(&mut self, limits: &RunLimits, entries: &mut Vec<T>) -> Option<LimitReached> {
        let room = usize::try_from(limits.entries.saturating_sub(self.entries)).unwrap_or(usize::MAX);
        let is_beyond = entries.len() > room;
        entries.truncate(room);
        self.entries += entries.len() as u64;
        is_beyond.then_some(LimitReached::Entries(limits.entries))
    }

    /// Takes followed links up to the limit. Returns how many of them there is room for.
    pub fn take_links(&mut self, limits: &RunLimits, found: usize) -> (usize, Option<LimitReached>) {
        let room = usize::try_from(limits.links.saturating_sub(self.links)).unwrap_or(usize::MAX);
        let taken = found.min(room);
        self.links += taken as u64;
        (taken, (taken < found).then_some(LimitReached::Links(limits.links)))
    }

    /// How many of the documents that an index lists may be queued. `above` is the number of indexes above it.
    pub fn room_for(&self, limits: &RunLimits, above: u32, named: usize) -> (usize, Option<LimitReached>) {
        if named > 0 && above >= limits.index_levels {
            return (0, Some(LimitReached::IndexLevels(limits.index_levels)));
        }
        let room = usize::try_from(limits.documents.saturating_sub(self.queued)).unwrap_or(usize::MAX);
        if named > room { (room, Some(LimitReached::Documents(limits.documents))) } else { (named, None) }
    }

    /// Counts documents that were queued.
    pub fn queue(&mut self, documents: usize) {
        self.queued += documents as u64;
    }
}

impl LimitReached {
    /// The problem reason for this limit.
    pub fn reason(self) -> ProblemReason {
        match self {
            Self::IndexLevels(_) => ProblemReason::LimitIndexLevels,
            Self::Documents(_) => ProblemReason::LimitDocuments,
            Self::Entries(_) => ProblemReason::LimitEntries,
            Self::DocumentBytes(_) => ProblemReason::LimitDocumentBytes,
            Self::Inflation(_) => ProblemReason::LimitInflation,
            Self::Links(_) => ProblemReason::LimitLinks,
        }
    }

    /// The command-line option, and the field of `scheduler.limits`.
    fn settings(self) -> (&'static str, &'static str) {
        match self {
            Self::IndexLevels(_) => ("--max-index-levels", "index_levels"),
            Self::Documents(_) => ("--max-documents", "documents"),
            Self::Entries(_) => ("--max-entries", "entries"),
            Self::DocumentBytes(_) => ("--max-document-bytes", "document_bytes"),
            Self::Inflation(_) => ("--max-inflation", "inflation"),
            Self::Links(_) => ("--max-links", "links"),
        }
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexLevels(most) => write!(f, "more than {most} indexes stand one above the other")?,
            Self::Documents(most) => write!(f, "the run would read more than {most} documents")?,
            Self::Entries(most) => write!(f, "the run would read more than {most} entries")?,
            Self::DocumentBytes(most) => write!(f, "the run would read more than {most} bytes of documents")?,
            Self::Inflation(most) => write!(f, "it inflates to more than {most} times its compressed size")?,
            Self::Links(most) => {
                write!(f, "the run would follow more than {most} links; the rest is not followed")?
            }
        }
        let (option, field) = self.settings();
        write!(
            f,
            "; if this Source is to be trusted, allow more with {option}, in a fleet with scheduler.limits.{field}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: RunLimits =
        RunLimits { index_levels: 1, documents: 2, entries: 5, document_bytes: 100, inflation: 10, links: 3 };

    #[test]
    fn entries_are_taken_until_the_limit_and_no_document_is_begun_behind_it() {
        let mut spent = ReadBudget::default();
        let mut entries = vec![(); 3];
        assert_eq!(spent.take_entries(&SMALL, &mut entries), None);
        assert_eq!(spent.begin_document(&SMALL), None);
        assert_eq!(spent.take_entries(&SMALL, &mut entries), Some(LimitReached::Entries(5)));
        assert_eq!((entries.len(), spent.begin_document(&SMALL)), (2, Some(LimitReached::Entries(5))));
    }

    #[test]
    fn as_many_entries_as_are_allowed_are_no_problem() {
        let mut spent = ReadBudget::default();
        assert_eq!(spent.take_entries(&SMALL, &mut vec![(); 5]), None);
        assert_eq!(spent.take_entries(&SMALL, &mut Vec::<()>::new()), None);
    }

    #[test]
    fn links_are_followed_until_the_limit() {
        let mut spent = ReadBudget::default();
        assert_eq!(spent.take_links(&SMALL, 2), (2, None));
        assert_eq!(spent.take_links(&SMALL, 2), (1, Some(LimitReached::Links(3))));
        assert_eq!(spent.take_links(&SMALL, 0), (0, None));
        assert_eq!(spent.take_links(&SMALL, 1), (0, Some(LimitReached::Links(3))));
    }

    #[test]
    fn a_document_may_have_what_is_left_of_the_bytes() {
        let mut spent = ReadBudget::default();
        spent.end_document(60);
        let options = spent.options(&SMALL, Options::default());
        assert_eq!((options.limits.max_document_bytes, options.limits.max_inflation), (Some(40), 10));
        spent.end_document(40);
        assert_eq!(spent.begin_document(&SMALL), Some(LimitReached::Documents(2)));
        let more = RunLimits { documents: 3, ..SMALL };
        assert_eq!(spent.begin_document(&more), Some(LimitReached::DocumentBytes(100)));
    }

    #[test]
    fn an_index_below_as_many_indexes_as_are_allowed_leads_nowhere() {
        let mut spent = ReadBudget::default();
        assert_eq!(spent.room_for(&SMALL, 0, 2), (2, None));
        assert_eq!(spent.room_for(&SMALL, 1, 2), (0, Some(LimitReached::IndexLevels(1))));
        assert_eq!(spent.room_for(&SMALL, 1, 0), (0, None), "a list below an index");
        spent.queue(1);
        assert_eq!(spent.room_for(&SMALL, 0, 2), (1, Some(LimitReached::Documents(2))));
        let taken_up = ReadBudget::default().with_queued(2);
        assert_eq!(taken_up.room_for(&SMALL, 0, 1), (0, Some(LimitReached::Documents(2))));
    }

    #[test]
    fn each_limit_says_how_more_is_allowed() {
        for met in [LimitReached::IndexLevels(3), LimitReached::Entries(7), LimitReached::Links(2)] {
            let (option, field) = met.settings();
            let said = met.to_string();
            assert!(said.contains(option) && said.contains(field), "{said}");
            assert!(met.reason().as_str().starts_with("limit-"), "{met:?}");
        }
    }
}
