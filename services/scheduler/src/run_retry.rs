//! What follows a harvest that stopped early in a fleet. Where a user of a laptop would run the same command again,
//! the fleet does.

use std::time::Duration;

use bus::BusError;
use catalog::CatalogError;
use control::RunWait;
use discovery::DiscoverError;
use harvest::HarvestError;
use jiff::Timestamp;
use web::WebError;

/// First wait before a harvest is resumed; doubled with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Maximum wait for a service of the fleet: its return is noticed within this time.
const LONGEST_OWN_WAIT: Duration = Duration::from_secs(15);

/// What follows a harvest that stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunRetry {
    /// A part of the fleet is away. The harvest is resumed after this time.
    Again(Duration),
    /// The run waits for its Source. It leaves its place.
    Park(RunWait),
    /// Another scheduler holds the lease; stop.
    Lost,
    /// It was asked to stop.
    Stopped,
    /// It cannot go on; the operator must act, or the next run retries.
    Fail,
}

/// Decides after the `attempt`th stop in a row, counted from 1. `before`: the last wait of the run, unless it has made
/// progress since.
pub(crate) fn next(error: &HarvestError, attempt: u32, before: Option<&RunWait>, now: Timestamp) -> RunRetry {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let own = RunRetry::Again(doubled.min(LONGEST_OWN_WAIT));
    let silent = || RunRetry::Park(RunWait::unreachable(before, error.to_string(), now));
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
        HarvestError::Unreachable { .. } => silent(),
        HarvestError::Discover(DiscoverError::Unreachable(error)) if passes(error) => silent(),
        HarvestError::Patience { until, .. } => {
            RunRetry::Park(RunWait::retry_after(before, error.to_string(), *until, now))
        }
        _ => RunRetry::Fail,
    }
}

fn passes(error: &WebError) -> bool {
    matches!(error.disposition(), model::Disposition::Retry { .. })
}

#[cfg(test)]
mod tests {
    use control::WaitReason;
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
        let wait = |attempt| match next(&gone(), attempt, None, now()) {
            RunRetry::Again(wait) => wait.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!([wait(1), wait(2), wait(5), wait(500)], [1, 2, 15, 15]);
    }

    #[test]
    fn a_run_leaves_its_place_while_its_source_is_silent_or_asks_for_a_pause() {
        let silent = HarvestError::Unreachable { origin: origin(), pending: 3 };
        let RunRetry::Park(first) = next(&silent, 1, None, now()) else { panic!("it waits") };
        assert_eq!((first.reason, first.tries), (WaitReason::Unreachable, 1));
        assert!(first.why.contains("cannot be reached"), "{}", first.why);
        let RunRetry::Park(second) = next(&silent, 1, Some(&first), now()) else { panic!("it waits") };
        assert_eq!((second.tries, second.since), (2, first.since));
        let until = now() + jiff::SignedDuration::from_secs(3_600);
        let patience = HarvestError::Patience { origin: origin(), until, pending: 3 };
        let RunRetry::Park(asked) = next(&patience, 1, Some(&first), now()) else { panic!("it waits") };
        assert_eq!((asked.reason, asked.until, asked.tries), (WaitReason::RetryAfter, until, 1));
    }

    #[test]
    fn what_no_waiting_mends_ends_the_run() {
        let nothing = HarvestError::NothingUsable { source_url: "http://h".into(), offers: "x".into() };
        assert_eq!(next(&nothing, 1, None, now()), RunRetry::Fail);
        assert_eq!(next(&HarvestError::Stopped, 1, None, now()), RunRetry::Stopped);
    }
}
