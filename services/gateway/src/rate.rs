//! Rate limits.

use governor::DefaultDirectRateLimiter;
use governor::clock::{Clock as _, DefaultClock};

/// Counts a request.
///
/// # Errors
/// The seconds until the next request is accepted, when this one exceeds the rate.
pub(crate) fn count(limiter: &DefaultDirectRateLimiter) -> Result<(), u64> {
    let clock = DefaultClock::default();
    limiter.check().map_err(|not_until| not_until.wait_time_from(clock.now()).as_secs() + 1)
}
