//! The simulation's time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use model::Clock;
use tokio::time::Instant;

/// When every simulation begins. It lies ahead of the machine's clock, from which the names of jobs are made.
const BEGIN: &str = "2040-01-01T00:00:00Z";

/// The time of a simulation: it passes with the paused clock of the runtime of the process that runs, and stands still between processes
/// unless it is moved.
#[derive(Debug)]
pub struct SimClock(Mutex<Time>);

#[derive(Debug)]
struct Time {
    /// The time at `since`, or now where no process runs.
    base: Timestamp,
    since: Option<Instant>,
}

impl SimClock {
    /// A clock at the beginning.
    pub fn new() -> Self {
        let base = BEGIN.parse().expect("a timestamp");
        Self(Mutex::new(Time { base, since: None }))
    }

    /// From now on it passes with the runtime that this is called in.
    pub fn run(&self) {
        let mut time = self.time();
        time.base = time.now();
        time.since = Some(Instant::now());
    }

    /// From now on it stands still. Called in the runtime that it passed with.
    pub fn stand(&self) {
        let mut time = self.time();
        time.base = time.now();
        time.since = None;
    }

    /// Moves it on.
    pub fn advance(&self, seconds: u32) {
        self.time().base += SignedDuration::from_secs(i64::from(seconds));
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Time {
    fn now(&self) -> Timestamp {
        let passed = self.since.map(|since| since.elapsed()).unwrap_or_default();
        self.base + SignedDuration::try_from(passed).unwrap_or_default()
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.time().now()
    }
}
