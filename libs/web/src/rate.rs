//! So many requests a second, evenly spaced.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// The pace of one origin.
pub(crate) struct Rate {
    clock: TokioClock,
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
}

/// The runtime's clock, which tests stop and move.
#[derive(Debug, Clone, Copy)]
struct TokioClock {
    start: Instant,
}

impl Rate {
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        let clock = TokioClock { start: Instant::now() };
        // No burst: a server that allows ten a second does not want ten at once.
        let quota = Quota::per_second(per_second).allow_burst(NonZeroU32::MIN);
        Self { clock, limiter: RateLimiter::direct_with_clock(quota, clock) }
    }

    /// Waits for the next turn.
    pub(crate) async fn turn(&self) {
        while let Err(not_until) = self.limiter.check() {
            tokio::time::sleep(not_until.wait_time_from(self.clock.now())).await;
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rate").finish_non_exhaustive()
    }
}

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_are_evenly_spaced_from_the_first_on() {
        let rate = Rate::new(NonZeroU32::new(4).unwrap());
        let start = Instant::now();
        let mut turns = Vec::new();
        for _ in 0..5 {
            rate.turn().await;
            turns.push(start.elapsed().as_millis());
        }
        // The runtime's timers round up to the next millisecond.
        for (turn, expected) in turns.into_iter().zip([0, 250, 500, 750, 1000]) {
            assert!((expected..=expected + 5).contains(&turn), "turn at {turn} ms, expected {expected}");
        }
    }
}
