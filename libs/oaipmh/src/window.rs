use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::granularity::Granularity;

/// The dates of a selective harvest: both bounds are inclusive, and either may be open (section 2.7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window {
    /// The earliest datestamp; open when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The latest datestamp; open when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Window {
    /// All datestamps: a full list sends neither bound.
    pub const ALL: Self = Self { from: None, until: None };

    /// From an instant on, without an end.
    pub fn since(from: Timestamp) -> Self {
        Self { from: Some(from), until: None }
    }

    /// Between two instants, both included.
    pub fn between(from: Timestamp, until: Timestamp) -> Self {
        Self { from: Some(from), until: Some(until) }
    }

    /// Whether neither bound is set.
    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// Splits it where a server cannot answer it whole: `[from, mid]` and `[mid + unit, until]`. An open end is
    /// taken as `earliest` or `now`, and the later half keeps an open `until`. `None` when it is one unit, or
    /// when its bounds do not allow a split.
    pub fn split(
        &self,
        granularity: Granularity,
        earliest: Timestamp,
        now: Timestamp,
    ) -> Option<(Self, Self)> {
        let unit = granularity.unit().as_secs();
        let first = granularity.floor(self.from.unwrap_or(earliest)).as_second().div_euclid(unit);
        let last = granularity.floor(self.until.unwrap_or(now)).as_second().div_euclid(unit);
        if last <= first {
            return None;
        }
        let middle = first + (last - first) / 2;
        let at = |units: i64| Timestamp::from_second(units.checked_mul(unit)?).ok();
        let earlier = Self { from: self.from, until: Some(at(middle)?) };
        let later = Self { from: Some(at(middle + 1)?), until: self.until };
        Some((earlier, later))
    }

    /// Whether a datestamp is inside, at this granularity. For a Source that ignores bounds.
    pub fn contains(&self, time: Timestamp, granularity: Granularity) -> bool {
        let time = granularity.floor(time);
        self.from.is_none_or(|from| granularity.floor(from) <= time)
            && self.until.is_none_or(|until| time <= granularity.floor(until))
    }
}
