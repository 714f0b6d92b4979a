//! Waits between attempts.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::sleep;

/// Waits that double from the first to the longest. They are random within a factor of two, so that processes that
/// failed together do not retry together.
#[derive(Debug)]
pub(crate) struct Backoff {
    waits: ExponentialBackoff,
    longest: Duration,
}

impl Backoff {
    /// No wait is shorter than `first` or longer than `longest`.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        // Jitter adds up to as much again.
        let waits = ExponentialBuilder::new()
            .with_min_delay(first)
            .with_max_delay(longest / 2)
            .with_jitter()
            .without_max_times()
            .build();
        Self { waits, longest }
    }

    /// The wait after so many failures in a row.
    pub(crate) fn after(failures: usize, first: Duration, longest: Duration) -> Duration {
        // As many doublings reach any longest wait.
        Self::new(first, longest).waits.nth(failures.min(16)).unwrap_or(longest)
    }

    /// The next wait.
    pub(crate) fn next_wait(&mut self) -> Duration {
        self.waits.next().unwrap_or(self.longest)
    }

    /// Waits until the next attempt.
    pub(crate) async fn pause(&mut self) {
        sleep(self.next_wait()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_the_first_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        for least in [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
            let wait = backoff.next_wait().as_secs_f64();
            assert!((least..=2.0 * least).contains(&wait), "{wait} s, at least {least} s");
        }
        for (failures, least) in [(0, 1), (1, 2), (4, 16), (5, 30), (1_000, 30)] {
            let wait = Backoff::after(failures, Duration::from_secs(1), Duration::from_secs(60));
            let least = Duration::from_secs(least);
            assert!((least..=2 * least).contains(&wait), "{wait:?} after {failures} failures");
        }
    }
}
