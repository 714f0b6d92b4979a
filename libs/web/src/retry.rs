//! Retries of a request.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use model::Disposition;

use crate::WebConfig;

/// The remaining attempts of one request.
#[derive(Debug)]
pub(crate) struct Retries {
    backoff: ExponentialBackoff,
    left: Duration,
}

impl Retries {
    /// All that `config` allows, without the first attempt.
    pub(crate) fn new(config: &WebConfig) -> Self {
        // Half of each wait is fixed, and up to as much again is random, so that clients that failed together
        // do not retry together.
        let backoff = ExponentialBuilder::new()
            .with_min_delay(config.backoff_first / 2)
            .with_max_delay(config.backoff_max / 2)
            .with_jitter()
            .with_max_times(config.attempts.saturating_sub(1) as usize)
            .build();
        Self { backoff, left: config.retry_budget }
    }

    /// The wait before the next attempt; none when a retry makes no sense, or none is left. The server's
    /// `Retry-After` is a lower bound. A wait beyond the remaining time is not started.
    pub(crate) fn next_wait(&mut self, disposition: Disposition) -> Option<Duration> {
        let Disposition::Retry { after } = disposition else { return None };
        let wished = after.map_or(Duration::ZERO, |after| after.try_into().unwrap_or(Duration::ZERO));
        let wait = self.backoff.next()?.max(wished);
        self.left = self.left.checked_sub(wait)?;
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const AGAIN: Disposition = Disposition::Retry { after: None };

    fn after(seconds: i64) -> Disposition {
        Disposition::Retry { after: Some(SignedDuration::from_secs(seconds)) }
    }

    fn retries(config: WebConfig) -> Retries {
        Retries::new(&config)
    }

    #[test]
    fn waits_double_with_chance_up_to_the_longest() {
        let config = WebConfig { attempts: 7, backoff_max: Duration::from_secs(4), ..WebConfig::default() };
        let mut retries = retries(config);
        for longest in [1.0, 2.0, 4.0, 4.0, 4.0, 4.0] {
            let wait = retries.next_wait(AGAIN).unwrap().as_secs_f64();
            assert!((longest / 2.0..=longest).contains(&wait), "{wait} s, longest {longest} s");
        }
        assert_eq!(retries.next_wait(AGAIN), None);
    }

    #[test]
    fn attempts_are_counted_with_the_first() {
        for attempts in [0, 1] {
            assert_eq!(retries(WebConfig { attempts, ..WebConfig::default() }).next_wait(AGAIN), None);
        }
    }

    #[test]
    fn what_is_refused_is_not_tried_again() {
        assert_eq!(retries(WebConfig::default()).next_wait(Disposition::Refuse), None);
    }

    #[test]
    fn the_servers_wish_is_kept_even_beyond_the_longest_backoff() {
        let config = WebConfig { backoff_max: Duration::from_secs(4), ..WebConfig::default() };
        let mut retries = retries(config);
        assert_eq!(retries.next_wait(after(60)), Some(Duration::from_secs(60)));
        assert!(retries.next_wait(after(0)).unwrap() >= Duration::from_millis(500));
    }

    #[test]
    fn waits_stay_within_the_budget() {
        let budget =
            |seconds| WebConfig { retry_budget: Duration::from_secs(seconds), ..WebConfig::default() };
        assert_eq!(retries(budget(59)).next_wait(after(60)), None);
        let mut retries = retries(budget(100));
        assert!(retries.next_wait(after(60)).is_some());
        assert_eq!(retries.next_wait(after(60)), None);
    }
}
