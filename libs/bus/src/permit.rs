//! A permit for a request to an origin outside of jobs.

use std::fmt::Debug;

/// The most permits at one origin, so that counting them stays cheap.
pub(crate) const MOST_PERMITS: usize = 8;

/// A permit for one open request at an origin. Dropping it returns it: see [`Bus::acquire_permit`](crate::Bus::acquire_permit).
#[derive(Debug)]
#[must_use = "a place that is dropped is given back"]
pub struct OriginPermit {
    _held: Box<dyn PermitGuard>,
}

/// The part of a permit that a bus implements. Dropping it returns the permit.
pub(crate) trait PermitGuard: Debug + Send + Sync {}

impl OriginPermit {
    pub(crate) fn new(held: impl PermitGuard + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// The number of permits of an origin with `limit` open requests: one less than the limit, so that jobs go on; at least
/// one.
pub(crate) fn permits_within(limit: usize) -> usize {
    limit.saturating_sub(1).clamp(1, MOST_PERMITS)
}

/// The number of these that may be spare permits for workers with a job: all but one.
pub(crate) fn spare_within(limit: usize) -> usize {
    permits_within(limit) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_keep_a_slot_wherever_there_is_more_than_one() {
        assert_eq!([0, 1, 2, 3, 5, 9, 10, 1_000].map(permits_within), [1, 1, 1, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn who_has_a_job_and_all_that_can_be_spared_leaves_a_slot() {
        for limit in 2..20 {
            assert!(1 + spare_within(limit) < limit, "{limit}");
        }
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9, 10].map(spare_within), [0, 0, 0, 1, 2, 3, 6, 7, 7]);
    }
}
