//! How often somebody may come.

use governor::DefaultDirectRateLimiter;
use governor::clock::{Clock as _, DefaultClock};

/// Counts one who comes.
///
/// # Errors
/// In how many seconds the next one is let in, when it is one too many.
pub(crate) fn count(limiter: &DefaultDirectRateLimiter) -> Result<(), u64> {
    let clock = DefaultClock::default();
    limiter.check().map_err(|not_until| not_until.wait_time_from(clock.now()).as_secs() + 1)
}
