//! Which origins want to be left alone.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::{Lane, Message};
use serde::{Deserialize, Serialize};

use crate::ControlError;
use crate::table::{Kept, Next, Table};
use crate::view::View;

/// No origin is left alone for longer on one word of it.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// The rests of all lanes.
#[derive(Debug, Clone)]
pub struct Rests {
    table: Table<Rest>,
}

/// An origin asked to be left alone. The rest is over when it is there no more, by the server's clock, so that
/// processes whose clocks differ agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// The origin.
    pub lane: Lane,
    /// Until when, by the clock of whom it told so.
    pub until: Timestamp,
    /// The status that told so: 429 or 503.
    pub status: u16,
}

impl Message for Rest {
    const KIND: &'static str = "rest";
    const VERSION: u16 = 1;
}

impl Kept for Rest {
    type Id = Lane;

    fn key(lane: &Lane) -> String {
        lane.token()
    }
}

impl Rests {
    pub(crate) fn new(table: Table<Rest>) -> Self {
        Self { table }
    }

    /// Puts a lane to rest, for at most a day. A rest that lasts longer already is left as it is.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn put(&self, rest: &Rest, now: Timestamp) -> Result<(), ControlError> {
        let Some(ttl) = lifetime(rest.until, now) else { return Ok(()) };
        let until = rest.until.min(now.saturating_add(LONGEST).unwrap_or(Timestamp::MAX));
        let rest = Rest { until, ..rest.clone() };
        let longer = |found: Option<&Rest>| {
            Ok(match found {
                Some(found) if found.until >= rest.until => Next::Stays,
                _ => Next::Lasts(rest.clone(), ttl),
            })
        };
        self.table.change(&rest.lane, || format!("rest of {}", rest.lane), longer).await.map(drop)
    }

    /// A live copy of all rests.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<Rest>, ControlError> {
        self.table.view().await
    }
}

/// How long a rest is kept: whole seconds, rather one more than one less. `None` when it is over.
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
