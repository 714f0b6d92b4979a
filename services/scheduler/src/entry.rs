//! From an entry of a document to what the plan works with.

use jiff::{SignedDuration, Timestamp};
use model::{Declaration, Listing, ResourceUri, SetId, UriError};
use resourcesync::{Capability, Change, Datetime, Entry, Precision, Zone};

/// What the document around an entry says.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The document's URI.
    pub(crate) document: String,
    /// Its set.
    pub(crate) set: SetId,
    /// Whether its entries are changes.
    pub(crate) changes: bool,
    /// `at` of a Resource List.
    pub(crate) at: Option<Datetime>,
}

/// An entry in the plan's words.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) uri: ResourceUri,
    pub(crate) declaration: Declaration,
    pub(crate) listing: Listing,
    /// The last instant the listing's moment can mean.
    pub(crate) latest: Option<Timestamp>,
}

impl Context {
    /// The context of a document that is read as `capability`.
    pub(crate) fn new(document: &str, set: &SetId, capability: &Capability, at: Option<Datetime>) -> Self {
        Self {
            document: document.to_owned(),
            set: set.clone(),
            changes: *capability == Capability::ChangeList,
            at,
        }
    }

    /// The entry in the plan's words.
    ///
    /// # Errors
    /// When the entry's URI is none that could be harvested.
    pub(crate) fn read(&self, entry: Entry) -> Result<Planned, UriError> {
        let uri = ResourceUri::try_from(entry.loc)?;
        let metadata = entry.metadata;
        let hashes = metadata.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
        let change = self.changes.then(|| change_of(metadata.change));
        // In 1.1 the change's time is `datetime`; 1.0 used `lastmod` (RS-7).
        let moment = match self.changes {
            true => metadata.datetime.as_ref().or(entry.lastmod.as_ref()),
            false => self.at.as_ref(),
        };
        let as_of = moment.and_then(certain_instant);
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
            change_time: as_of.filter(|_| self.changes),
            as_of,
        };
        let latest = moment.and_then(latest_instant);
        Ok(Planned { uri, declaration, listing, latest })
    }
}

/// A change whose kind is missing is read as an update: a fetch does no harm, a deletion might.
fn change_of(change: Option<Change>) -> Change {
    change.unwrap_or(Change::Updated)
}

/// The first instant a time can mean. A time without zone may be hours off: it orders nothing, so the entry is compared
/// by its digests alone.
pub(crate) fn certain_instant(datetime: &Datetime) -> Option<Timestamp> {
    (datetime.zone() != Zone::Missing).then(|| datetime.instant())
}

/// The last instant a time can mean: the end of the second, minute or day it names.
pub(crate) fn latest_instant(datetime: &Datetime) -> Option<Timestamp> {
    let width = match datetime.precision() {
        Precision::Subsecond => return certain_instant(datetime),
        Precision::Second => SignedDuration::from_secs(1),
        Precision::Minute => SignedDuration::from_mins(1),
        Precision::Day => SignedDuration::from_hours(24),
        Precision::Month => SignedDuration::from_hours(31 * 24),
        Precision::Year => SignedDuration::from_hours(366 * 24),
    };
    let end = certain_instant(datetime)?.checked_add(width).ok()?;
    end.checked_sub(SignedDuration::from_nanos(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datetime(text: &str) -> Datetime {
        Datetime::parse_lenient(text).unwrap().0
    }

    #[test]
    fn a_second_lasts_until_the_next_one() {
        let latest = latest_instant(&datetime("2026-01-01T12:00:05Z")).unwrap();
        assert!(latest > "2026-01-01T12:00:05.9Z".parse().unwrap());
        assert!(latest < "2026-01-01T12:00:06Z".parse().unwrap());
        let exact = datetime("2026-01-01T12:00:05.3Z");
        assert_eq!(latest_instant(&exact), Some(exact.instant()));
    }

    #[test]
    fn a_time_without_zone_orders_nothing() {
        let zoneless = datetime("2026-01-01T12:00:05");
        assert_eq!(certain_instant(&zoneless), None);
        assert_eq!(latest_instant(&zoneless), None);
    }
}
