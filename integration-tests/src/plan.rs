//! The plan of a simulation: a Source, and a sequence of steps. All of it follows from a seed.

mod hop;
mod seed;
mod steps;
mod text;

pub use hop::Hop;
use model::{Absent, Mode, Prefer};
use planning::{Filter, WindowLimits};
use regex::Regex;

use crate::effects::{Halt, Rates};
use crate::site::{HttpFault, SiteSpec};

/// The plan of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The Source.
    pub site: SiteSpec,
    /// Concurrent requests of a process to one origin.
    pub per_origin: usize,
    /// How much of a run is in memory and on the bus at a time.
    pub window: WindowLimits,
    /// Whether every message is encoded and decoded, as between the services of a fleet, or passed as a
    /// value.
    pub by_wire: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The Source changes this many resources.
    Change {
        /// New ones.
        created: u32,
        /// Updated ones.
        updated: u32,
        /// Deleted ones.
        deleted: u32,
    },
    /// The Source publishes its documents anew.
    Publish {
        /// Resource List and Resource Dump.
        snapshots: bool,
        /// Change List and Change Dump.
        changes: bool,
    },
    /// The Source drops old changes from its Change List.
    Forget,
    /// This many seconds pass.
    Pass(u32),
    /// A process syncs the copy, or stops before.
    Sync(Sync),
    /// A process falls asleep during a run, another one runs, and the first one wakes up.
    TakeOver {
        /// The first one, which sleeps at its halt.
        first: Sync,
        /// The step of the other one.
        second: Box<Step>,
    },
    /// gc runs.
    Gc {
        /// The retention time in seconds.
        keep_for: u32,
        /// Where its process stops.
        halt: Option<Halt>,
    },
    /// A deletion is undone, if there is one.
    Restore,
}

/// A run of `thresher sync`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sync {
    /// The mode.
    pub mode: Option<Mode>,
    /// Lists or dumps.
    pub prefer: Option<Prefer>,
    /// The filter.
    pub only: Option<Only>,
    /// The policy for absent resources.
    pub absent: Absent,
    /// The most deletions for absence, in percent.
    pub max_deletes: u8,
    /// Faults between the Source and the process.
    pub http: Vec<HttpFault>,
    /// Faults of messages and objects.
    pub rates: Rates,
    /// Where the process stops.
    pub halt: Option<Halt>,
    /// The effect before which it is asked to stop: its run is parked.
    pub parks: Option<u64>,
}

/// A filter of resources by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Those with an even number.
    Even,
    /// Those with an odd number.
    Odd,
}

impl Only {
    /// The filter.
    pub fn filter(only: Option<Self>) -> Filter {
        let pattern = only.map(|only| match only {
            Self::Even => "[02468]$",
            Self::Odd => "[13579]$",
        });
        let include = pattern.map(|pattern| Regex::new(pattern).expect("a regular expression"));
        Filter { include, ..Filter::default() }
    }
}

impl Sync {
    /// A run without faults.
    pub fn clean() -> Self {
        Self {
            mode: None,
            prefer: None,
            only: None,
            absent: Absent::Confirm,
            max_deletes: 100,
            http: Vec::new(),
            rates: Rates::default(),
            halt: None,
            parks: None,
        }
    }
}
