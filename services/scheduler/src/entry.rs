//! Converts an entry of a document to the form that planning uses.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::{Declaration, Listing, ResourceUri, SetId, UriError};
use resourcesync::{Capability, Change, Datetime, Entry, Interval, Item, Mode, Options, Zone};

/// How far a Source's clock may run ahead of the local clock.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(10);

/// The latest time that counts as plausible when a document is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Horizon(Timestamp);

/// Context of an entry: data of its document.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The document's URI.
    pub(crate) document: Arc<str>,
    /// Its set.
    pub(crate) set: SetId,
    /// Whether its entries are changes.
    pub(crate) changes: bool,
    /// `at` of a Resource List.
    pub(crate) at: Option<Datetime>,
    /// `completed` of a Resource List.
    pub(crate) completed: Option<Datetime>,
    /// Interval of its changes, if given.
    pub(crate) interval: Interval,
    /// Kind of its parts, if it were an index.
    pub(crate) kind: Option<Capability>,
    /// Horizon at the time of reading.
    pub(crate) horizon: Horizon,
}

/// An entry in the form that planning uses.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) uri: ResourceUri,
    pub(crate) declaration: Declaration,
    pub(crate) listing: Listing,
    /// More about the listing's time than its first instant.
    pub(crate) moment: Moment,
}

/// The rest of the time span that an entry's time can mean, beyond its first instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The last instant that it can mean.
    pub(crate) latest: Option<Timestamp>,
    /// Whether a time is given, but unreliable: without a zone, or in the future.
    pub(crate) is_vague: bool,
}

impl Context {
    /// Whether an item leads to a part of this document, although the document is not an index.
    pub(crate) fn is_part(&self, item: &Item) -> bool {
        match (item, &self.kind) {
            (Item::Entry(entry), Some(kind)) => entry.names_part_of(kind),
            _ => false,
        }
    }

    /// Whether an entry leads to a package where a change of a resource is expected.
    pub(crate) fn is_package(&self, entry: &Entry) -> bool {
        let is_change_list = self.kind == Some(Capability::ChangeList);
        is_change_list && entry.metadata.change.is_none() && entry.names_package()
    }

    /// Converts an entry.
    ///
    /// # Errors
    /// When the entry's URI cannot be harvested.
    pub(crate) fn read(&self, entry: Entry) -> Result<Planned, UriError> {
        let uri = ResourceUri::try_from(entry.loc)?;
        let metadata = entry.metadata;
        let hashes = metadata.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
        let change = self.changes.then(|| change_of(metadata.change));
        let (given, completed) = match self.changes {
            true => (metadata.datetime.as_ref(), None),
            false => (self.at.as_ref(), self.completed.as_ref()),
        };
        let moments = [given, entry.lastmod.as_ref(), completed];
        let listed_until =
            moments.into_iter().flatten().filter_map(|time| Interval::named_by(time).last()).max();
        let (as_of, moment) = match given {
            None if self.changes => self.undated(entry.lastmod.as_ref()),
            given => self.horizon.moment(given),
        };
        let time = given.or(entry.lastmod.as_ref());
        let is_certain = time.is_some_and(|time| self.horizon.certain_instant(time).is_some());
        let declaration = Declaration {
            digests: hashes.known,
            unjudged: hashes.unjudged,
            length: metadata.length,
            media_type: metadata.media_type,
            encoding: metadata.encoding,
            lastmod: entry.lastmod.as_ref().map(Datetime::instant),
        };
        let listing = Listing {
            document: self.document.clone(),
            set: self.set.clone(),
            change,
            change_time: as_of.filter(|_| self.changes && is_certain),
            as_of,
            latest: listed_until,
        };
        Ok(Planned { uri, declaration, listing, moment })
    }

    /// Time of a change that gives only the last modification of the resource, or no time. It is no earlier than that
    /// modification, and otherwise any time in the document's interval. The order of the entries decides the rest.
    fn undated(&self, lastmod: Option<&Datetime>) -> (Option<Timestamp>, Moment) {
        let latest = self.interval.last();
        let possible = lastmod.filter(|lastmod| self.horizon.moment(Some(lastmod)).0.is_some());
        match possible.and_then(|lastmod| self.interval.since(lastmod)) {
            // A deletion may be older than the stored version although its `lastmod` is newer, and the reverse.
            Some(since) => (since.first(), Moment { latest, is_vague: true }),
            None => (None, Moment { latest, is_vague: false }),
        }
    }
}

/// A change without a kind counts as an update: a fetch does no harm, a deletion might.
fn change_of(change: Option<Change>) -> Change {
    change.unwrap_or(Change::Updated)
}

impl Horizon {
    /// The horizon of a reading at `now`.
    pub(crate) fn at(now: Timestamp) -> Self {
        Self(now.saturating_add(CLOCKS_DIFFER).unwrap_or(Timestamp::MAX))
    }

    /// Options for reading documents; quirks are counted by the same horizon.
    pub(crate) fn options(self, mode: Mode) -> Options {
        Options { mode, latest: Some(self.0), ..Options::default() }
    }

    /// The first instant that a time can mean, if that is certain. A time without zone may be hours off. A time in
    /// the future is wrong by an unknown amount.
    pub(crate) fn certain_instant(self, datetime: &Datetime) -> Option<Timestamp> {
        let first = datetime.instant();
        (datetime.zone() != Zone::Missing && first <= self.0).then_some(first)
    }

    /// The last instant that a time can mean, if that is certain: the end of its second, minute or day.
    pub(crate) fn latest_instant(self, datetime: &Datetime) -> Option<Timestamp> {
        self.certain_instant(datetime).and_then(|_| Interval::named_by(datetime).last())
    }

    /// The interval of a document. An end in the future is ignored.
    pub(crate) fn interval(self, from: Option<&Datetime>, until: Option<&Datetime>) -> Interval {
        let is_possible = |time: &&Datetime| time.instant() <= self.0;
        Interval::between(from.filter(is_possible), until.filter(is_possible))
    }

    /// The time span in which the time of an entry lies.
    fn moment(self, datetime: Option<&Datetime>) -> (Option<Timestamp>, Moment) {
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

    /// The last instant of an entry, in a list with `at` and `completed`.
    fn listed_until(lastmod: Option<&str>, at: Option<&str>, completed: Option<&str>) -> Option<Timestamp> {
        let context = Context {
            document: "http://h/l.xml".into(),
            set: SetId::new("http://h"),
            changes: false,
            at: at.map(datetime),
            completed: completed.map(datetime),
            interval: Interval::OPEN,
            kind: Some(Capability::ResourceList),
            horizon: horizon(),
        };
        let mut entry = Entry::new("http://h/a");
        entry.lastmod = lastmod.map(datetime);
        context.read(entry).unwrap().listing.latest
    }

    #[test]
    fn an_entry_speaks_until_the_latest_of_its_moments() {
        let [day, noon, one] = ["2026-01-01", "2026-01-01T12:00:00Z", "2026-01-01T13:00:00.5Z"];
        let end = |text: &str| Interval::named_by(&datetime(text)).last();
        assert_eq!(listed_until(None, None, None), None);
        assert_eq!(listed_until(Some(noon), None, None), end(noon));
        assert_eq!(listed_until(None, Some(noon), None), end(noon));
        assert_eq!(listed_until(Some(noon), Some(one), None), end(one));
        assert_eq!(listed_until(Some(one), Some(noon), None), end(one));
        assert_eq!(listed_until(Some(noon), Some(noon), Some(one)), end(one));
        let everywhere: Timestamp = "2026-01-02T11:59:59.999999999Z".parse().unwrap();
        assert_eq!(listed_until(Some(day), Some(one), None), Some(everywhere), "a day lasts until its end");
    }

    #[test]
    fn a_moment_without_zone_may_be_twelve_hours_later() {
        let latest = listed_until(Some("2026-01-01T12:00:00.5"), Some("2026-01-01T13:00:00Z"), None).unwrap();
        assert_eq!(latest, "2026-01-02T00:00:00.5Z".parse().unwrap());
    }

    /// A change without `datetime`, in a Change List from the second day of the year until `until`.
    fn changed(lastmod: Option<&str>, until: Option<&str>) -> Planned {
        let from = datetime("2026-01-01T00:00:00Z");
        let context = Context {
            document: "http://h/c.xml".into(),
            set: SetId::new("http://h"),
            changes: true,
            at: None,
            completed: None,
            interval: horizon().interval(Some(&from), until.map(datetime).as_ref()),
            kind: Some(Capability::ChangeList),
            horizon: horizon(),
        };
        let mut entry = Entry::new("http://h/a");
        entry.lastmod = lastmod.map(datetime);
        entry.metadata.change = Some(Change::Created);
        context.read(entry).unwrap()
    }

    #[test]
    fn a_lastmod_before_its_change_list_is_no_time_of_change() {
        for lastmod in [None, Some("2000-01-01T00:00:00Z")] {
            let planned = changed(lastmod, None);
            assert_eq!((planned.listing.as_of, planned.listing.change_time), (None, None));
            assert_eq!(planned.moment, Moment::default());
            let closed = changed(lastmod, Some("2026-01-01T12:00:00.0Z"));
            assert_eq!(
                closed.moment.latest,
                instant("2026-01-01T12:00:00Z"),
                "the document's interval decides"
            );
        }
    }

    #[test]
    fn a_lastmod_within_its_change_list_is_the_earliest_moment_of_the_change() {
        let planned = changed(Some("2026-01-01T12:00:00Z"), None);
        assert_eq!(planned.listing.as_of, instant("2026-01-01T12:00:00Z"));
        assert_eq!(planned.listing.change_time, planned.listing.as_of);
        assert_eq!(planned.moment, Moment { latest: None, is_vague: true });
    }
}
