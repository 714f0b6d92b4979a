//! The logical clock: a simulated Source never reads the wall clock, so that the same seed and the same
//! commands give the same documents on any day.

use std::fmt;

use jiff::{SignedDuration, Timestamp, fmt::rfc2822};

/// A moment of the simulation, in whole seconds since 2026-01-01T00:00:00Z; `Display` writes a
/// W3C Datetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(i64);

/// The clock of a simulated Source. It starts at 2026-01-01T00:00:00Z and moves only with a change or on
/// request.
#[derive(Debug, Clone)]
pub struct SimClock {
    now: SimTime,
}

/// 2026-01-01T00:00:00Z in seconds of the Unix epoch.
const START_UNIX_SECONDS: i64 = 1_767_225_600;

impl SimTime {
    /// The moment at which every simulation begins.
    pub const START: SimTime = SimTime(0);

    /// The moment `seconds` after this one (before it when negative).
    pub fn plus(self, seconds: i64) -> SimTime {
        SimTime(self.0.saturating_add(seconds))
    }

    /// Seconds since [`SimTime::START`].
    pub fn seconds(self) -> i64 {
        self.0
    }

    /// The same moment as a timestamp.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_second(START_UNIX_SECONDS)
            .unwrap_or_default()
            .saturating_add(SignedDuration::from_secs(self.0))
            .unwrap_or(Timestamp::MAX)
    }

    /// The moment as an HTTP date, for `Last-Modified`.
    pub(crate) fn http_date(self) -> String {
        // Every moment of the years 0 to 9999 has an HTTP date.
        rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&self.timestamp()).unwrap_or_default()
    }

    /// Parses an HTTP date; `None` when it is none.
    pub(crate) fn from_http_date(text: &str) -> Option<SimTime> {
        let moment = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(SimTime(moment.as_second() - START_UNIX_SECONDS))
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

impl SimClock {
    /// A clock at the start of the simulation.
    pub fn new() -> SimClock {
        SimClock { now: SimTime::START }
    }

    /// The present moment.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Moves the clock and returns the new present.
    pub fn advance(&mut self, seconds: u32) -> SimTime {
        self.now = self.now.plus(i64::from(seconds));
        self.now
    }
}

impl Default for SimClock {
    fn default() -> SimClock {
        SimClock::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_starts_with_2026_and_counts_seconds() {
        let mut clock = SimClock::new();
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:00Z");
        clock.advance(61);
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:01Z");
    }

    #[test]
    fn an_http_date_is_written_and_read_back() {
        let time = SimTime::START.plus(86_399);
        assert_eq!(time.http_date(), "Thu, 01 Jan 2026 23:59:59 GMT");
        assert_eq!(SimTime::from_http_date(&time.http_date()), Some(time));
        assert_eq!(SimTime::from_http_date("yesterday"), None);
    }
}
