//! When something happened, as far as a document states it: documents name seconds, days and intervals, not
//! moments.

use jiff::{SignedDuration, Timestamp};

use crate::datetime::{Datetime, Precision, Zone};
use crate::entry::Entry;

/// The most that local time can be ahead of UTC, and behind it.
const EASTERNMOST: SignedDuration = SignedDuration::from_hours(14);
const WESTERNMOST: SignedDuration = SignedDuration::from_hours(12);

/// The moments at which something may have happened, from the first to the last one, both included. An
/// unknown end is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Interval {
    /// Any moment.
    pub const OPEN: Self = Self { first: None, last: None };

    /// The moments that a time can mean: the whole second, minute or day that it names. A time without zone
    /// may belong to any place on Earth.
    pub fn named_by(time: &Datetime) -> Self {
        let (ahead, behind) = match time.zone() {
            Zone::Missing => (EASTERNMOST, WESTERNMOST),
            Zone::Utc | Zone::Offset(_) => (SignedDuration::ZERO, SignedDuration::ZERO),
        };
        Self {
            first: time.instant().checked_sub(ahead).ok(),
            last: end_of(time).and_then(|end| end.checked_add(behind).ok()),
        }
    }

    /// The moments between a document's `from` and `until`, as far as it has them.
    pub fn between(from: Option<&Datetime>, until: Option<&Datetime>) -> Self {
        Self {
            first: from.and_then(|from| Self::named_by(from).first),
            last: until.and_then(|until| Self::named_by(until).last),
        }
    }

    /// The moments of this interval at which a resource with this `lastmod` may have changed. It changed no
    /// earlier than `lastmod`, but perhaps later: `lastmod` is no time of a change. None when `lastmod` is
    /// outside of the interval, and so does not narrow it.
    pub fn since(self, lastmod: &Datetime) -> Option<Self> {
        let named = Self::named_by(lastmod);
        if named.is_before(self) || self.is_before(named) {
            return None;
        }
        Some(Self { first: self.first.max(named.first), last: self.last })
    }

    /// When the change of a change document's entry happened. `document` is the interval of the document,
    /// `latest` the latest moment that a time can truly mean.
    ///
    /// The entry's `datetime` states it. Without one it is some moment of the document's interval, which
    /// `lastmod` may narrow. The order of the entries decides the rest.
    pub fn of_change(entry: &Entry, document: Self, latest: Timestamp) -> Self {
        let is_possible = |time: &&Datetime| time.instant() <= latest;
        match &entry.metadata.datetime {
            Some(datetime) if datetime.instant() <= latest => Self::named_by(datetime),
            Some(_) => Self::OPEN,
            None => {
                let lastmod = entry.lastmod.as_ref().filter(is_possible);
                lastmod.and_then(|lastmod| document.since(lastmod)).unwrap_or(document)
            }
        }
    }

    /// Whether all of these moments are certainly before all of those.
    pub fn is_before(self, other: Self) -> bool {
        self.last.zip(other.first).is_some_and(|(last, first)| last < first)
    }

    /// The first moment; None if it is open.
    pub fn first(self) -> Option<Timestamp> {
        self.first
    }

    /// The last moment; None if it is open.
    pub fn last(self) -> Option<Timestamp> {
        self.last
    }
}

/// The last instant of the second, minute or day that a time names.
fn end_of(time: &Datetime) -> Option<Timestamp> {
    let width = match time.precision() {
        Precision::Subsecond => return Some(time.instant()),
        Precision::Second => SignedDuration::from_secs(1),
        Precision::Minute => SignedDuration::from_mins(1),
        Precision::Day => SignedDuration::from_hours(24),
        Precision::Month => SignedDuration::from_hours(31 * 24),
        Precision::Year => SignedDuration::from_hours(366 * 24),
    };
    time.instant().checked_add(width).ok()?.checked_sub(SignedDuration::from_nanos(1)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn datetime(text: &str) -> Datetime {
        Datetime::parse_lenient(text).unwrap().0
    }

    fn instant(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    fn day() -> Interval {
        let [from, until] = ["2026-01-10T00:00:00Z", "2026-01-11T00:00:00.0Z"].map(datetime);
        Interval::between(Some(&from), Some(&until))
    }

    fn change(datetime_text: Option<&str>, lastmod: Option<&str>, document: Interval) -> Interval {
        let mut entry = Entry::new("http://h/a");
        entry.metadata.datetime = datetime_text.map(datetime);
        entry.lastmod = lastmod.map(datetime);
        Interval::of_change(&entry, document, "2026-06-01T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_second_lasts_until_the_next_one_and_a_fraction_is_a_moment() {
        let second = Interval::named_by(&datetime("2026-01-01T12:00:05Z"));
        assert_eq!(second.first(), instant("2026-01-01T12:00:05Z"));
        assert_eq!(second.last(), instant("2026-01-01T12:00:05.999999999Z"));
        let exact = Interval::named_by(&datetime("2026-01-01T12:00:05.3Z"));
        assert_eq!(exact.first(), exact.last());
    }

    #[test]
    fn a_time_without_zone_is_that_of_any_place_on_earth() {
        let anywhere = Interval::named_by(&datetime("2026-01-01T14:00:00.0"));
        assert_eq!(anywhere.first(), instant("2026-01-01T00:00:00Z"));
        assert_eq!(anywhere.last(), instant("2026-01-02T02:00:00Z"));
    }

    #[test]
    fn a_change_happened_at_its_datetime_wherever_its_document_stands() {
        let named = Interval::named_by(&datetime("2026-02-01T00:00:00Z"));
        assert_eq!(change(Some("2026-02-01T00:00:00Z"), Some("2000-01-01"), day()), named);
        assert_eq!(change(Some("2099-01-01T00:00:00Z"), None, day()), Interval::OPEN);
    }

    #[test]
    fn a_lastmod_before_its_document_tells_nothing_of_the_change() {
        for lastmod in [None, Some("2000-01-01T01:01:00Z"), Some("2026-01-12T00:00:00Z"), Some("2099-01-01")]
        {
            assert_eq!(change(None, lastmod, day()), day(), "{lastmod:?}");
        }
    }

    #[test]
    fn a_lastmod_within_its_document_is_the_earliest_moment_of_the_change() {
        let since = change(None, Some("2026-01-10T12:00:00Z"), day());
        assert_eq!((since.first(), since.last()), (instant("2026-01-10T12:00:00Z"), day().last()));
        let open = change(None, Some("2026-01-10T12:00:00Z"), Interval::OPEN);
        assert_eq!((open.first(), open.last()), (instant("2026-01-10T12:00:00Z"), None));
        assert_eq!(change(None, Some("2026-01-10"), day()), day(), "the day begins before its document");
    }

    fn times() -> impl Strategy<Value = Datetime> {
        let seconds = 1_700_000_000_i64..1_700_500_000;
        (seconds, 0..6_usize, any::<bool>()).prop_map(|(seconds, precision, has_zone)| {
            let time = Timestamp::from_second(seconds).unwrap().to_string();
            let text = match precision {
                0 => time[..4].to_owned(),
                1 => time[..7].to_owned(),
                2 => time[..10].to_owned(),
                3 => format!("{}Z", &time[..16]),
                4 => time.clone(),
                _ => format!("{}.25Z", &time[..19]),
            };
            let has_zone = has_zone || precision < 3;
            datetime(if has_zone { &text } else { text.trim_end_matches('Z') })
        })
    }

    fn documents() -> impl Strategy<Value = Interval> {
        (proptest::option::of(times()), proptest::option::of(times()))
            .prop_map(|(from, until)| Interval::between(from.as_ref(), until.as_ref()))
    }

    proptest! {
        #[test]
        fn a_time_lies_in_the_interval_that_it_names(time in times()) {
            let named = Interval::named_by(&time);
            prop_assert!(named.first() <= Some(time.instant()) && Some(time.instant()) <= named.last());
        }

        #[test]
        fn without_a_datetime_a_change_lies_in_its_documents_interval(
            document in documents(),
            lastmod in proptest::option::of(times()),
        ) {
            let mut entry = Entry::new("http://h/a");
            entry.lastmod = lastmod;
            let change = Interval::of_change(&entry, document, Timestamp::MAX);
            prop_assert!(change.first() >= document.first());
            prop_assert_eq!(change.last(), document.last());
        }

        #[test]
        fn before_is_an_order(a in times(), b in times(), c in times()) {
            let [a, b, c] = [a, b, c].map(|time| Interval::named_by(&time));
            prop_assert!(!a.is_before(a));
            prop_assert!(!(a.is_before(b) && b.is_before(a)));
            prop_assert!(!(a.is_before(b) && b.is_before(c)) || a.is_before(c));
        }
    }
}
