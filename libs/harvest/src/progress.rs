//! Progress of a run while it works.

use jiff::SignedDuration;
use model::{Counters, Phase};

/// Snapshot of a run's progress, for display.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Current phase; none before the Source has answered.
    pub phase: Option<Phase>,
    /// The document being read.
    pub document: Option<String>,
    /// The run's counters.
    pub counters: Counters,
    /// Counters when this process resumed the run; none if it began it.
    pub taken_up: Option<Counters>,
    /// Pending records left.
    pub pending: u64,
    /// How far the synchronized time is behind the changes in the documents read so far; none before a set is known.
    pub behind: Option<SignedDuration>,
    /// Document requests by result, in this process.
    pub documents: DocumentCounts,
    /// Resources in outstanding jobs.
    pub in_flight: usize,
    /// Outstanding jobs, and the maximum at the origins that have work.
    pub window: (usize, usize),
    /// Whether it resumes an interrupted run.
    pub resumed: bool,
}

/// Number of document requests, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentCounts {
    /// Read to the end.
    pub read: u64,
    /// Unchanged since the last reading.
    pub unmodified: u64,
    /// Not read to the end.
    pub failed: u64,
}
