//! What follows the end of a harvest in a fleet: where a person at a laptop would run the same command again, the fleet does.

use std::time::Duration;

use bus::BusError;
use catalog::CatalogError;
use jiff::Timestamp;
use web::WebError;

use crate::{DiscoverError, HarvestError};

/// The first wait before a harvest is taken up again; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait for something of the fleet's own: it is found within this time when it is back.
const LONGEST_OWN_WAIT: Duration = Duration::from_secs(15);
/// The longest wait for a Source that does not answer.
const LONGEST_SOURCE_WAIT: Duration = Duration::from_secs(600);

/// What follows a harvest that did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is taken up again after this time. `of_source`: it is the Source that is waited for, and not for ever.
    Again { wait: Duration, of_source: bool },
    /// Somebody else owns the Source: hands off.
    Lost,
    /// It was asked to stop.
    Stopped,
    /// It cannot go on; a person, or the next run, has to look.
    Fail,
}

/// Decides after the `attempt`th end in a row, from 1.
pub(crate) fn next(error: &HarvestError, attempt: u32, now: Timestamp) -> Next {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let own = Next::Again { wait: doubled.min(LONGEST_OWN_WAIT), of_source: false };
    let source = Next::Again { wait: (doubled * 10).min(LONGEST_SOURCE_WAIT), of_source: true };
    match error {
        HarvestError::Stopped => Next::Stopped,
        HarvestError::Catalog(CatalogError::Fenced { .. }) => Next::Lost,
        // The store, the catalog that lies in it, and the bus come back, or somebody makes room.
        HarvestError::Catalog(error) if error.is_temporary() => own,
        HarvestError::Store(error) if error.is_retryable() => own,
        HarvestError::Trouble(_) => own,
        HarvestError::Bus(BusError::Unavailable { .. } | BusError::NotOpen { .. }) => own,
        HarvestError::Unreachable { .. } => source,
        HarvestError::Discover(DiscoverError::Unreachable(error)) if passes(error) => source,
        HarvestError::Patience { until, .. } => {
            let asked = Duration::try_from(until.duration_since(now)).unwrap_or_default();
            Next::Again { wait: asked.max(FIRST_WAIT), of_source: true }
        }
        _ => Next::Fail,
    }
}

fn passes(error: &WebError) -> bool {
    matches!(error.disposition(), model::Disposition::Retry { .. })
}

#[cfg(test)]
mod tests {
    use model::Lane;

    use super::*;

    fn lane() -> Lane {
        "http://h".parse().unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    #[test]
    fn the_fleets_own_parts_are_waited_for_shortly_and_for_ever() {
        let gone = || HarvestError::Bus(BusError::Unavailable { action: "pull".into(), source: "x".into() });
        let wait = |attempt| match next(&gone(), attempt, now()) {
            Next::Again { wait, of_source: false } => wait.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!([wait(1), wait(2), wait(5), wait(500)], [1, 2, 15, 15]);
    }

    #[test]
    fn a_source_is_waited_for_longer_and_as_long_as_it_asks_for() {
        let silent = HarvestError::Unreachable { lane: lane(), pending: 3 };
        assert_eq!(next(&silent, 1, now()), Next::Again { wait: Duration::from_secs(10), of_source: true });
        assert_eq!(next(&silent, 50, now()), Next::Again { wait: LONGEST_SOURCE_WAIT, of_source: true });
        let until = now() + jiff::SignedDuration::from_secs(3_600);
        let patience = HarvestError::Patience { lane: lane(), until, pending: 3 };
        assert_eq!(
            next(&patience, 1, now()),
            Next::Again { wait: Duration::from_secs(3_600), of_source: true }
        );
    }

    #[test]
    fn what_no_waiting_mends_ends_the_run() {
        let nothing = HarvestError::NothingUsable { source_url: "http://h".into(), offers: "x".into() };
        assert_eq!(next(&nothing, 1, now()), Next::Fail);
        assert_eq!(next(&HarvestError::Stopped, 1, now()), Next::Stopped);
    }
}
