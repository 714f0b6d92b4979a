//! Which times of a Source are credible, and which time span each can mean.

use jiff::{SignedDuration, Timestamp};
use resourcesync::{Datetime, Interval, Mode, Options, Zone};

/// How far a Source's clock may run ahead of the local clock.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(10);

/// The latest time that counts as plausible when a document is read.
#[derive(Debug, Clone, Copy)]
pub struct Horizon(Timestamp);

/// The rest of the time span that an entry's time can mean, beyond its first instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// The last instant that it can mean.
    pub latest: Option<Timestamp>,
    /// Whether a time is given, but unreliable: without a zone, or in the future.
    pub is_vague: bool,
}

impl Horizon {
    /// The horizon of a reading at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(now.saturating_add(CLOCKS_DIFFER).unwrap_or(Timestamp::MAX))
    }

    /// Options for reading documents; quirks are counted by the same horizon.
    pub fn options(self, mode: Mode) -> Options {
        Options { mode, latest: Some(self.0), ..Options::default() }
    }

    /// The first instant that a time can mean, if that is certain. A time without zone may be hours off. A time in
    /// the future is wrong by an unknown amount.
    pub fn certain_instant(self, datetime: &Datetime) -> Option<Timestamp> {
        let first = datetime.instant();
        (datetime.zone() != Zone::Missing && first <= self.0).then_some(first)
    }

    /// The last instant that a time can mean, if that is certain: the end of its second, minute or day.
    pub fn latest_instant(self, datetime: &Datetime) -> Option<Timestamp> {
        self.certain_instant(datetime).and_then(|_| Interval::named_by(datetime).last())
    }

    /// The interval of a document. An end in the future is ignored.
    pub fn interval(self, from: Option<&Datetime>, until: Option<&Datetime>) -> Interval {
        let is_possible = |time: &&Datetime| time.instant() <= self.0;
        Interval::between(from.filter(is_possible), until.filter(is_possible))
    }

    /// The time span in which the time of an entry lies.
    pub(crate) fn moment(self, datetime: Option<&Datetime>) -> (Option<Timestamp>, Moment) {
        let Some(datetime) = datetime else { return (None, Moment::default()) };
        let is_vague = self.certain_instant(datetime).is_none();
        if datetime.instant() > self.0 && datetime.zone() != Zone::Missing {
            return (None, Moment { latest: None, is_vague });
        }
        let named = Interval::named_by(datetime);
        match named.first().filter(|first| *first <= self.0) {
            Some(first) => (Some(first), Moment { latest: named.last(), is_vague }),
            None => (None, Moment { latest: None, is_vague }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datetime(text: &str) -> Datetime {
        Datetime::parse_lenient(text).unwrap().0
    }

    fn instant(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    fn horizon() -> Horizon {
        Horizon::at("2026-01-02T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_second_lasts_until_the_next_one() {
        let latest = horizon().latest_instant(&datetime("2026-01-01T12:00:05Z")).unwrap();
        assert!(latest > "2026-01-01T12:00:05.9Z".parse().unwrap());
        assert!(latest < "2026-01-01T12:00:06Z".parse().unwrap());
        let exact = datetime("2026-01-01T12:00:05.3Z");
        assert_eq!(horizon().latest_instant(&exact), Some(exact.instant()));
    }

    #[test]
    fn a_time_without_zone_is_certain_to_a_day_only() {
        let zoneless = datetime("2026-01-01T14:00:00.0");
        assert_eq!(horizon().certain_instant(&zoneless), None);
        assert_eq!(horizon().latest_instant(&zoneless), None);
        let (first, moment) = horizon().moment(Some(&zoneless));
        assert_eq!(first, instant("2026-01-01T00:00:00Z"));
        assert_eq!(moment, Moment { latest: instant("2026-01-02T02:00:00Z"), is_vague: true });
    }

    #[test]
    fn a_time_in_the_future_orders_nothing_unless_clocks_may_differ_so_much() {
        for text in ["2026-01-02T01:00:00Z", "2099-01-01T00:00:00"] {
            let future = datetime(text);
            assert_eq!((horizon().certain_instant(&future), horizon().latest_instant(&future)), (None, None));
            assert_eq!(horizon().moment(Some(&future)), (None, Moment { latest: None, is_vague: true }));
        }
        let ahead = datetime("2026-01-02T00:05:00Z");
        assert_eq!(horizon().certain_instant(&ahead), Some(ahead.instant()));
    }

    #[test]
    fn no_time_is_no_vague_time() {
        assert_eq!(horizon().moment(None), (None, Moment::default()));
    }
}
