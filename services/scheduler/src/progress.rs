//! What a run shows while it works.

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
    /// Resources in jobs that are under way.
    pub in_flight: usize,
    /// Whether it goes on with a run that was interrupted.
    pub resumed: bool,
}
