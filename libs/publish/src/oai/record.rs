//! A record as it stands now, and since when.

use jiff::Timestamp;
use model::{Bitstream, ChangeEvent, ChangeLogEntry, ResourceRecord, ResourceUri};
use oaipmh::{BaseUrl, RecordHeader, Status};
use resourcesync::relation;

use super::position::Position;

/// The clock of a record may be read a moment before or after that of its entry.
const SLACK: std::time::Duration = std::time::Duration::from_secs(1);

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OaiRecord {
    /// Its header: identifier and sets as the first repository gave them, and our datestamp.
    pub header: RecordHeader,
    /// Its metadata as a document of its own; none of a deleted record, and in lists of headers.
    pub metadata: Option<String>,
}

/// A record, before its bytes are read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) position: Position,
    pub(super) header: RecordHeader,
    /// None of a deleted record.
    pub(super) bitstream: Option<Bitstream>,
}

impl Found {
    /// Bytes of its metadata.
    pub(super) fn bytes(&self) -> u64 {
        self.bitstream.as_ref().map_or(0, |stored| stored.computed.length())
    }
}

/// The header of a record.
pub(super) fn header(
    base: &BaseUrl,
    identifier: String,
    record: &ResourceRecord,
    since: Timestamp,
    status: Status,
) -> RecordHeader {
    RecordHeader { identifier, datestamp: Some(since.into()), sets: specs(base, record), status }
}

/// The sets that a record names: they are kept as links to their lists.
pub(super) fn specs(base: &BaseUrl, record: &ResourceRecord) -> Vec<String> {
    let links = record.listing.links.as_ref().map(model::Links::to_vec).unwrap_or_default();
    let collections = links.iter().filter(|link| link.rel == relation::COLLECTION);
    collections.filter_map(|link| base.set_of(&link.href)).collect()
}

/// Whether an event may be the last change of a record.
pub(super) fn is_change(event: &ChangeEvent) -> bool {
    matches!(
        event,
        ChangeEvent::Created { .. }
            | ChangeEvent::Updated { .. }
            | ChangeEvent::Deleted { .. }
            | ChangeEvent::Restored { .. }
            | ChangeEvent::Healed { .. }
    )
}

/// The state of a record since an entry of the change log. None if a later entry replaced it: that one is listed.
pub(super) fn state_since(entry: &ChangeLogEntry, record: &ResourceRecord) -> Option<Status> {
    let is_since =
        |stored: &Bitstream| entry.at >= stored.stored_at.checked_sub(SLACK).unwrap_or(Timestamp::MIN);
    match &entry.event {
        ChangeEvent::Created { sha256 }
        | ChangeEvent::Updated { sha256, .. }
        | ChangeEvent::Restored { sha256 }
        | ChangeEvent::Healed { sha256, .. } => {
            let stored = record.bitstream.as_ref()?;
            // The same bytes may have been stored before, too.
            (stored.computed.sha256() == *sha256 && is_since(stored)).then_some(Status::Live)
        }
        ChangeEvent::Deleted { .. } => {
            let is_last = record.deleted.as_ref().is_none_or(is_since);
            (!record.is_present() && is_last).then_some(Status::Deleted)
        }
        _ => None,
    }
}

/// The moments near which a record has its last change in the log.
pub(super) fn moments(record: &ResourceRecord) -> impl Iterator<Item = Timestamp> {
    let stored = record.bitstream.as_ref().map(|stored| stored.stored_at);
    [Some(record.settled_at), stored.filter(|stored| *stored != record.settled_at)].into_iter().flatten()
}

/// The record of a URI: its identifier, if it is one of this repository in this format.
pub(super) fn identifier(base: &BaseUrl, uri: &ResourceUri, prefix: &str) -> Option<String> {
    base.record_of(uri.as_str()).filter(|(_, own)| own == prefix).map(|(identifier, _)| identifier)
}
