//! Retry times after failures, and the stored reason of a failure. Pure functions.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The longest pause that a server can request.
const LONGEST_WISH: SignedDuration = SignedDuration::from_hours(24);
/// The longest stored reason, in characters.
const LONGEST_WHY: usize = 500;

/// The time after this wait, or the end of time.
pub(crate) fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// The pause after so many failed attempts: `first` after one, twice as long after each further one, and at most
/// `longest`.
pub(crate) fn pause(first: Duration, longest: Duration, tries: u32) -> Duration {
    first.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(longest)
}

/// The time of the next request that a server asked for, at most a day from now. Without such a request, now.
pub(crate) fn cap_retry_after(not_before: Option<Timestamp>, now: Timestamp) -> Timestamp {
    not_before.unwrap_or(now).min(now.saturating_add(LONGEST_WISH).unwrap_or(Timestamp::MAX))
}

/// The reason, shortened for storage.
pub(crate) fn reason(why: &str) -> String {
    why.chars().take(LONGEST_WHY).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_however_many_tries_there_were() {
        let first = Duration::from_secs(5);
        let longest = Duration::from_secs(60);
        let pauses = [0, 1, 2, 4, 5, u32::MAX].map(|tries| pause(first, longest, tries).as_secs());
        assert_eq!(pauses, [5, 5, 10, 40, 60, 60]);
    }

    #[test]
    fn a_wish_counts_for_a_day_at_most_and_a_reason_for_so_many_characters() {
        let now = Timestamp::from_second(1_772_366_400).unwrap();
        let after = |seconds| now + SignedDuration::from_secs(seconds);
        assert_eq!(cap_retry_after(None, now), now);
        assert_eq!(cap_retry_after(Some(after(9)), now), after(9));
        assert_eq!(cap_retry_after(Some(after(999_999)), now), after(24 * 3_600));
        assert_eq!(later(Timestamp::MAX, Duration::MAX), Timestamp::MAX);
        assert_eq!(reason(&"ä".repeat(501)), "ä".repeat(500));
    }
}
