//! The simulation's time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use model::Clock;
use tokio::time::Instant;

/// The start of every simulation. It is later than the machine's clock, which gives the time in the ids of
/// jobs.
const BEGIN: &str = "2040-01-01T00:00:00Z";

/// The time of a simulation: it passes with the paused clock of the running process's runtime, and stands
/// still between processes unless it is moved.
#[derive(Debug)]
pub struct SimClock(Mutex<Time>);

#[derive(Debug)]
struct Time {
    /// The time at `since`, or now if no process runs.
    base: Timestamp,
    since: Option<Instant>,
}

impl SimClock {
    /// A clock at the start.
    pub fn new() -> Self {
        let base = BEGIN.parse().expect("a timestamp");
        Self(Mutex::new(Time { base, since: None }))
    }

    /// Lets it pass with the current runtime from now on.
    pub fn run(&self) {
        let mut time = self.time();
        time.base = time.now();
        time.since = Some(Instant::now());
    }

    /// Stops it. To be called in the runtime that it passed with.
    pub fn stand(&self) {
        let mut time = self.time();
        time.base = time.now();
        time.since = None;
    }

    /// Moves it forward.
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
