//! Kills schedulers while they work.

use std::time::{Duration, Instant};

use crate::fleet::Fleet;

/// Kills a scheduler now and then, each in turn.
pub(super) struct Killer {
    every: Option<Duration>,
    last: Instant,
    schedulers: usize,
    /// How many it has killed.
    pub(super) kills: usize,
}

impl Killer {
    /// Kills one of the schedulers so often; none without an interval.
    pub(super) fn new(every: Option<Duration>, schedulers: usize) -> Self {
        Self { every, last: Instant::now(), schedulers, kills: 0 }
    }

    /// Kills a scheduler and starts it again, if it is time.
    pub(super) fn turn(&mut self, fleet: &mut Fleet) -> anyhow::Result<()> {
        if self.every.is_some_and(|every| self.last.elapsed() >= every) {
            self.last = Instant::now();
            fleet.kill_and_start("scheduler", self.kills % self.schedulers)?;
            self.kills += 1;
        }
        Ok(())
    }
}
