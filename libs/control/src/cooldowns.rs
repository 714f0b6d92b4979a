//! Cooldowns of origins.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::{Message, Origin, Persisted};
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::kept::Kept;
use crate::table::{Table, Update};

/// The longest cooldown that one response of an origin can set.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// The cooldowns of all origins.
pub type Cooldowns = Table<Cooldown>;

/// The cooldown of an origin. It is over when its key has expired, by the server's clock, so that processes with
/// different clocks agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooldown {
    /// The origin.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// Its end, by the clock of the process that got the response.
    pub until: Timestamp,
    /// The status that set it: 429 or 503.
    pub status: u16,
}

impl Message for Cooldown {
    const KIND: &'static str = "rest";
    const VERSION: u16 = Persisted::Cooldowns.version();
}

impl Kept for Cooldown {
    type Id = Origin;

    fn key(origin: &Origin) -> String {
        origin.token()
    }
}

impl Table<Cooldown> {
    /// Sets the cooldown of an origin, for at most a day. A cooldown that already lasts longer stays.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn put(&self, rest: &Cooldown, now: Timestamp) -> Result<(), ControlError> {
        let Some(ttl) = lifetime(rest.until, now) else { return Ok(()) };
        let until = rest.until.min(now.saturating_add(LONGEST).unwrap_or(Timestamp::MAX));
        let rest = Cooldown { until, ..rest.clone() };
        let longer = |found: Option<&Cooldown>| {
            Ok(match found {
                Some(found) if found.until >= rest.until => Update::Stays,
                _ => Update::Lasts(rest.clone(), ttl),
            })
        };
        self.change(&rest.origin, longer).await.map(drop)
    }
}

/// The lifetime of a cooldown in whole seconds, rounded up. `None` when it is over.
fn lifetime(until: Timestamp, now: Timestamp) -> Option<Duration> {
    let left = until.duration_since(now).min(LONGEST);
    if left <= SignedDuration::ZERO {
        return None;
    }
    let up = u64::from(left.subsec_nanos() > 0);
    Some(Duration::from_secs(left.unsigned_abs().as_secs() + up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_kept_for_whole_seconds_and_never_too_short() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let lifetime = |millis: i64| lifetime(now + SignedDuration::from_millis(millis), now);
        assert_eq!(lifetime(0), None);
        assert_eq!(lifetime(-5000), None);
        assert_eq!(lifetime(1), Some(Duration::from_secs(1)));
        assert_eq!(lifetime(3000), Some(Duration::from_secs(3)));
        assert_eq!(lifetime(3001), Some(Duration::from_secs(4)));
        assert_eq!(lifetime(i64::from(i32::MAX)), Some(Duration::from_secs(24 * 3600)));
    }
}
