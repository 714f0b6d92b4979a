//! Rate limits.

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, NotUntil};

/// Counts a request.
///
/// # Errors
/// The seconds until the next request is accepted, when this one exceeds the rate.
pub(crate) fn count(limiter: &DefaultDirectRateLimiter) -> Result<(), u64> {
    limiter.check().map_err(seconds)
}

/// The seconds until the next request is accepted.
pub(crate) fn seconds(not_until: NotUntil<<DefaultClock as Clock>::Instant>) -> u64 {
    not_until.wait_time_from(DefaultClock::default().now()).as_secs() + 1
}
