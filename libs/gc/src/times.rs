//! The times that decide what a collection may remove.

use jiff::{SignedDuration, Timestamp};
use model::{Phase, RunRecord};

/// Stores report the time of an object by the second, and some file systems by two.
const RESOLUTION: SignedDuration = SignedDuration::from_secs(5);
/// The most difference between the clocks of a fleet and its store, where the retention is longer than that.
const APART: SignedDuration = SignedDuration::from_hours(1);

/// The times of a collection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    began: Timestamp,
    keep_for: SignedDuration,
}

impl Times {
    /// `began` is a time before anything was read.
    pub(crate) fn new(began: Timestamp, keep_for: SignedDuration) -> Self {
        Self { began, keep_for }
    }

    /// When the collection began.
    pub(crate) fn began(&self) -> Timestamp {
        self.began
    }

    /// Anything that was deleted or released since this time is kept.
    pub(crate) fn retained_since(&self) -> Timestamp {
        before(self.began, self.keep_for)
    }

    /// Anything stored since this time is within the retention. If a run or a job is not finished, its start counts.
    /// Its results may be settled late, so none of them is old.
    pub(crate) fn young_since(&self, unfinished: Option<Timestamp>) -> Timestamp {
        let young = before(self.retained_since(), RESOLUTION);
        match unfinished {
            Some(begin) => young.min(before(before(begin, self.keep_for.min(APART)), RESOLUTION)),
            None => young,
        }
    }
}

/// Whether the run is finished.
pub(crate) fn is_at_rest(run: &RunRecord) -> bool {
    run.phase == Phase::Finished
}

fn before(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn without_retention_all_that_was_stored_before_is_old_unless_something_is_under_way() {
        let times = Times::new(at(1_000), SignedDuration::ZERO);
        assert_eq!(times.young_since(None), at(995));
        assert_eq!(times.young_since(Some(at(100))), at(95));
        assert_eq!(times.young_since(Some(at(2_000))), at(995));
    }

    #[test]
    fn with_retention_the_clocks_may_be_apart() {
        let times = Times::new(at(100_000), SignedDuration::from_secs(50_000));
        assert_eq!(times.retained_since(), at(50_000));
        assert_eq!(times.young_since(Some(at(60_000))), at(49_995));
        assert_eq!(times.young_since(Some(at(20_000))), at(20_000 - 3_600 - 5));
    }

    #[test]
    fn a_retention_longer_than_time_itself_keeps_everything() {
        let times = Times::new(at(0), SignedDuration::MAX);
        assert_eq!(times.young_since(None), Timestamp::MIN);
    }
}
