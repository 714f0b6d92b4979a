//! What follows a harvest that stopped early in a fleet. Where a user of a laptop would run the same command again,
//! the fleet does.

use std::time::Duration;

use bus::BusError;
use catalog::CatalogError;
use discovery::DiscoverError;
use harvest::HarvestError;
use jiff::Timestamp;
use model::Counters;
use tokio::time::Instant;
use web::WebError;

/// First wait before a harvest is resumed; doubled with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Maximum wait for a service of the fleet: its return is noticed within this time.
const LONGEST_OWN_WAIT: Duration = Duration::from_secs(15);
/// Maximum wait for a Source that does not answer.
const LONGEST_SOURCE_WAIT: Duration = Duration::from_secs(600);

/// What follows a harvest that stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunRetry {
    /// It is resumed after this time. `of_source`: the wait is for the Source, and has a limit.
    Again { wait: Duration, of_source: bool },
    /// Another scheduler holds the lease; stop.
    Lost,
    /// It was asked to stop.
    Stopped,
    /// It cannot go on; the operator must act, or the next run retries.
    Fail,
}

/// Retry state of a run: how often in a row it stopped early, and since when its Source is silent. Any progress
/// resets both: a run of several days may meet a second silence.
#[derive(Debug)]
pub(crate) struct Patience {
    /// How long a Source may be silent.
    limit: Duration,
    attempt: u32,
    silent_since: Option<Instant>,
    /// Maximum progress at any earlier stop.
    done: u64,
}

impl Patience {
    /// For a Source that may be silent for `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, attempt: 0, silent_since: None, done: 0 }
    }

    /// Decides after a harvest that stopped with these counters.
    pub(crate) fn next(&mut self, error: &HarvestError, counters: &Counters, now: Timestamp) -> RunRetry {
        let Counters { listed, stored, unchanged, deleted, .. } = counters;
        let done = listed + stored + unchanged + deleted;
        if done > self.done {
            *self = Self { done, ..Self::new(self.limit) };
        }
        self.attempt += 1;
        let next = next(error, self.attempt, now);
        if let RunRetry::Again { wait, of_source } = next {
            let since = *self.silent_since.get_or_insert_with(Instant::now);
            if !of_source {
                self.silent_since = None;
            } else if since.elapsed() + wait > self.limit {
                return RunRetry::Fail;
            }
        }
        next
    }
}

/// Decides after the `attempt`th stop in a row, counted from 1.
pub(crate) fn next(error: &HarvestError, attempt: u32, now: Timestamp) -> RunRetry {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let own = RunRetry::Again { wait: doubled.min(LONGEST_OWN_WAIT), of_source: false };
    let source = RunRetry::Again { wait: (doubled * 10).min(LONGEST_SOURCE_WAIT), of_source: true };
    match error {
        HarvestError::Stopped => RunRetry::Stopped,
        HarvestError::Catalog(CatalogError::Fenced { .. }) => RunRetry::Lost,
        // The store with its catalog and the bus will return, or the operator will free disk space.
        HarvestError::Catalog(error) if error.is_temporary() => own,
        HarvestError::Store(error) if error.is_retryable() => own,
        HarvestError::StoreFailed(_) => own,
        HarvestError::Observer(error) if error.is_temporary => own,
        HarvestError::Bus(BusError::NotOpen { .. }) => own,
        HarvestError::Bus(error) if error.is_temporary() => own,
        HarvestError::Unreachable { .. } => source,
        HarvestError::Discover(DiscoverError::Unreachable(error)) if passes(error) => source,
        HarvestError::Patience { until, .. } => {
            let asked = Duration::try_from(until.duration_since(now)).unwrap_or_default();
            RunRetry::Again { wait: asked.max(FIRST_WAIT), of_source: true }
        }
        _ => RunRetry::Fail,
    }
}

fn passes(error: &WebError) -> bool {
    matches!(error.disposition(), model::Disposition::Retry { .. })
}

#[cfg(test)]
mod tests {
    use model::Origin;

    use super::*;

    fn origin() -> Origin {
        "http://h".parse().unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    #[test]
    fn the_fleets_own_parts_are_waited_for_shortly_and_for_ever() {
        let gone = || HarvestError::Bus(BusError::Unavailable { action: "pull".into(), source: "x".into() });
        let wait = |attempt| match next(&gone(), attempt, now()) {
            RunRetry::Again { wait, of_source: false } => wait.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!([wait(1), wait(2), wait(5), wait(500)], [1, 2, 15, 15]);
    }

    #[test]
    fn a_source_is_waited_for_longer_and_as_long_as_it_asks_for() {
        let silent = HarvestError::Unreachable { origin: origin(), pending: 3 };
        assert_eq!(
            next(&silent, 1, now()),
            RunRetry::Again { wait: Duration::from_secs(10), of_source: true }
        );
        assert_eq!(next(&silent, 50, now()), RunRetry::Again { wait: LONGEST_SOURCE_WAIT, of_source: true });
        let until = now() + jiff::SignedDuration::from_secs(3_600);
        let patience = HarvestError::Patience { origin: origin(), until, pending: 3 };
        assert_eq!(
            next(&patience, 1, now()),
            RunRetry::Again { wait: Duration::from_secs(3_600), of_source: true }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_is_waited_for_so_long_and_once_more_after_it_has_answered() {
        let silent = HarvestError::Unreachable { origin: origin(), pending: 3 };
        let mut patience = Patience::new(Duration::from_secs(100));
        // Total wait before the run was given up.
        let waits = async |patience: &mut Patience, counters: Counters| {
            let mut waits = Vec::new();
            while let RunRetry::Again { wait, of_source: true } = patience.next(&silent, &counters, now()) {
                tokio::time::advance(wait).await;
                waits.push(wait.as_secs());
            }
            waits
        };
        let counted = |stored, requests| Counters { stored, requests, ..Counters::default() };
        assert_eq!(waits(&mut patience, counted(0, 0)).await, [10, 20, 40]);
        assert_eq!(
            waits(&mut patience, counted(0, 9)).await,
            [0; 0],
            "a request without an answer is no progress"
        );
        assert_eq!(waits(&mut patience, counted(1, 9)).await, [10, 20, 40]);
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_of_the_fleets_own_is_no_silence_of_the_source() {
        let silent = HarvestError::Unreachable { origin: origin(), pending: 3 };
        let gone = HarvestError::Bus(BusError::Unavailable { action: "pull".into(), source: "x".into() });
        let mut patience = Patience::new(Duration::from_secs(60));
        for error in [&silent, &gone, &silent] {
            let next = patience.next(error, &Counters::default(), now());
            assert!(matches!(next, RunRetry::Again { .. }), "{error}: {next:?}");
            tokio::time::advance(Duration::from_secs(50)).await;
        }
        assert_eq!(patience.next(&silent, &Counters::default(), now()), RunRetry::Fail);
    }

    #[test]
    fn what_no_waiting_mends_ends_the_run() {
        let nothing = HarvestError::NothingUsable { source_url: "http://h".into(), offers: "x".into() };
        assert_eq!(next(&nothing, 1, now()), RunRetry::Fail);
        assert_eq!(next(&HarvestError::Stopped, 1, now()), RunRetry::Stopped);
    }
}
