//! The header of a document: its kind and times, and the context by which its entries are read.

use model::DocumentRecord;
use planning::{EntryContext, Horizon};
use resourcesync::{Capability, Datetime, Header};

/// A document must be of the expected kind. For one that does not say its kind (a plain sitemap), the operator's
/// choice counts.
pub fn expect_kind(header: &Header, expected: &Capability) -> Result<(), String> {
    match &header.capability {
        None => Ok(()),
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(format!("it is a {found}, but was announced as a {expected}")),
    }
}

/// A document must be an Archive of the expected kind. Returns whether its entries are parts of it; otherwise they are
/// the documents of the past. An index of Change Lists may stand where their Archive is announced: DSpace writes
/// `changelistindex` there.
///
/// # Errors
/// What it is instead.
pub fn expect_archive(header: &Header, expected: &Capability) -> Result<bool, String> {
    let is_index_of_lists = header.is_index()
        && *expected == Capability::ChangeListArchive
        && header.capability == Some(Capability::ChangeList);
    if is_index_of_lists {
        return Ok(false);
    }
    expect_kind(header, expected).map(|()| header.is_index())
}

/// Records the header of a document. Returns the context by which its entries are read.
pub fn take_header(record: &mut DocumentRecord, uri: &str, header: Header, horizon: Horizon) -> EntryContext {
    let certain = |time: Option<Datetime>| time.and_then(|time| horizon.certain_instant(&time));
    let latest = |time: Option<Datetime>| time.and_then(|time| horizon.latest_instant(&time));
    record.root = Some(header.root);
    record.at = certain(header.at);
    record.at_latest = latest(header.at);
    // The index's value for a part applies if the part itself has none.
    let from_index = record.from.filter(|_| record.parent.is_some());
    record.from = certain(header.from).or(from_index);
    record.until = certain(header.until).or(record.archived_until);
    record.until_latest = latest(header.until).or(record.archived_until);
    EntryContext {
        document: uri.into(),
        set: record.set.clone(),
        changes: record.tells_changes(),
        at: header.at,
        completed: header.completed,
        interval: horizon.interval(header.from.as_ref(), header.until.as_ref()),
        kind: header.capability,
        horizon,
    }
}
