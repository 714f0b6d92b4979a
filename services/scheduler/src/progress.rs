//! What a run shows while it works.

use jiff::SignedDuration;
use model::{Counters, Phase};

/// A picture of a run, for whoever watches it.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Where it stands; none before the Source has answered.
    pub phase: Option<Phase>,
    /// The document being read.
    pub document: Option<String>,
    /// What it has counted.
    pub counters: Counters,
    /// What had been counted when this process took the run up; none when it began it.
    pub taken_up: Option<Counters>,
    /// Pending records left.
    pub pending: u64,
    /// How far what is synchronized lies behind what the Source's documents tell, as far as they were read; none before a set is known.
    pub behind: Option<SignedDuration>,
    /// Documents by what came of asking for them, in this process.
    pub documents: Documents,
    /// Resources in jobs that are under way.
    pub in_flight: usize,
    /// Jobs that are under way, and the most that may be at the origins that have work.
    pub window: (usize, usize),
    /// Whether it goes on with a run that was interrupted.
    pub resumed: bool,
}

/// How many documents were asked for, by what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Documents {
    /// Read to their end.
    pub read: u64,
    /// Unchanged since they were read last.
    pub unmodified: u64,
    /// Not read to their end.
    pub failed: u64,
}
