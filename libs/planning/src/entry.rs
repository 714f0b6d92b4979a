//! Converts an entry of a document to the form that planning uses.

use std::sync::Arc;

use jiff::Timestamp;
use model::{Declaration, Links, Listing, ResourceUri, SetId, UriError};
use resourcesync::{Capability, Change, Datetime, Entry, Interval, Item};

use crate::horizon::{Horizon, Moment};

/// EntryContext of an entry: data of its document.
#[derive(Debug, Clone)]
pub struct EntryContext {
    /// The document's URI.
    pub document: Arc<str>,
    /// Its set.
    pub set: SetId,
    /// Whether its entries are changes.
    pub changes: bool,
    /// `at` of a Resource List.
    pub at: Option<Datetime>,
    /// `completed` of a Resource List.
    pub completed: Option<Datetime>,
    /// Interval of its changes, if given.
    pub interval: Interval,
    /// Kind of its parts, if it were an index.
    pub kind: Option<Capability>,
    /// Horizon at the time of reading.
    pub horizon: Horizon,
}

/// An entry in the form that planning uses.
#[derive(Debug, Clone)]
pub struct ListedEntry {
    /// The resource.
    pub uri: ResourceUri,
    /// What the entry states about its bytes.
    pub declaration: Declaration,
    /// Where and as of when it is listed.
    pub listing: Listing,
    /// More about the listing's time than its first instant.
    pub moment: Moment,
}

impl EntryContext {
    /// Whether an item leads to a part of this document, although the document is not an index.
    pub fn is_part(&self, item: &Item) -> bool {
        match (item, &self.kind) {
            (Item::Entry(entry), Some(kind)) => entry.names_part_of(kind),
            _ => false,
        }
    }

    /// Whether an entry leads to a package where a change of a resource is expected.
    pub fn is_package(&self, entry: &Entry) -> bool {
        let is_change_list = self.kind == Some(Capability::ChangeList);
        is_change_list && entry.metadata.change.is_none() && entry.names_package()
    }

    /// Converts an entry.
    ///
    /// # Errors
    /// When the entry's URI cannot be harvested.
    pub fn read(&self, entry: Entry) -> Result<ListedEntry, UriError> {
        let uri = ResourceUri::try_from(entry.loc)?;
        let metadata = entry.metadata;
        let hashes = metadata.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
        let change = self.changes.then(|| change_of(metadata.change));
        let (given, completed) = if self.changes {
            (metadata.datetime.as_ref(), None)
        } else {
            (self.at.as_ref(), self.completed.as_ref())
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
            links: Links::of(&entry.links),
            linked: None,
        };
        Ok(ListedEntry { uri, declaration, listing, moment })
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

    /// The last instant of an entry, in a list with `at` and `completed`.
    fn listed_until(lastmod: Option<&str>, at: Option<&str>, completed: Option<&str>) -> Option<Timestamp> {
        let context = EntryContext {
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
    fn changed(lastmod: Option<&str>, until: Option<&str>) -> ListedEntry {
        let from = datetime("2026-01-01T00:00:00Z");
        let context = EntryContext {
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
