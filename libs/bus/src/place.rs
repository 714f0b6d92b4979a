//! A place at an origin, for a request that no job asks for.

use std::fmt::Debug;

/// The most places at one origin that are given at a time, so that counting them costs little.
pub(crate) const MOST_PLACES: usize = 4;

/// A place among the requests that may be open at an origin, given back when dropped: see [`Bus::place`](crate::Bus::place).
#[derive(Debug)]
#[must_use = "a place that is dropped is given back"]
pub struct Place {
    _held: Box<dyn Held>,
}

/// What a bus keeps for a place; its end gives the place back.
pub(crate) trait Held: Debug + Send + Sync {}

impl Place {
    pub(crate) fn new(held: impl Held + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// How many places an origin has where `limit` requests may be open: one less, so that jobs go on beside them; at least one.
pub(crate) fn places_within(limit: usize) -> usize {
    limit.saturating_sub(1).clamp(1, MOST_PLACES)
}

/// How many of these are given to those who work on a job already: all but one.
pub(crate) fn spare_within(limit: usize) -> usize {
    places_within(limit) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_keep_a_slot_wherever_there_is_more_than_one() {
        assert_eq!([0, 1, 2, 3, 5, 6, 1_000].map(places_within), [1, 1, 1, 2, 4, 4, 4]);
    }

    #[test]
    fn who_has_a_job_and_all_that_can_be_spared_leaves_a_slot() {
        for limit in 2..20 {
            assert!(1 + spare_within(limit) < limit, "{limit}");
        }
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(spare_within), [0, 0, 0, 1, 2, 3, 3]);
    }
}
