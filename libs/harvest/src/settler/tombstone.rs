//! The record of a deleted resource.

use jiff::Timestamp;
use model::{PendingRecord, ResourceRecord};

use super::outcomes::sets_of;

/// The record of a resource whose deletion was told, with what is known of its last version. A deletion that is told
/// again keeps the time of the first one, since the log tells no second one: retention counts from it.
pub(super) fn tombstone(
    before: Option<Box<ResourceRecord>>,
    pending: &PendingRecord,
    now: Timestamp,
) -> ResourceRecord {
    // The last links stay with the last version: both are restored together.
    let listing = match &before {
        Some(record) if pending.listing.links.is_none() => pending.listing.with_links_of(&record.listing),
        _ => pending.listing.clone(),
    };
    let earlier = before.as_ref().filter(|record| !record.is_present());
    ResourceRecord {
        bitstream: None,
        sets: sets_of(before.as_deref(), &pending.listing.set),
        collected: earlier.and_then(|record| record.collected),
        settled_at: earlier.map_or(now, |record| record.settled_at),
        deleted: before.and_then(|record| record.bitstream.or(record.deleted)),
        absent: None,
        declaration: pending.declaration.clone(),
        listing,
    }
}

#[cfg(test)]
mod tests {
    use model::{Action, Declaration, Listing, Provenance, Seq, SetId};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn deletion(told: i64) -> PendingRecord {
        let listing = Listing {
            document: "http://h/changes.xml".into(),
            set: SetId::new("http://h/caps.xml"),
            change: Some(resourcesync::Change::Deleted),
            change_time: None,
            as_of: None,
            latest: Some(at(told)),
            links: None,
            linked: None,
        };
        PendingRecord::new(
            Seq::new(1),
            Action::Delete,
            Declaration::default(),
            listing,
            Provenance::default(),
        )
    }

    #[test]
    fn a_deletion_that_is_told_again_later_keeps_the_time_of_the_first() {
        let first = tombstone(None, &deletion(1), at(10));
        assert_eq!(first.settled_at, at(10));
        let again = tombstone(Some(Box::new(first)), &deletion(2), at(20));
        assert_eq!((again.settled_at, again.listing.latest), (at(10), Some(at(2))));
    }
}
