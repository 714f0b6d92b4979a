//! Undoing a deletion: what was held before it becomes current again, as long as its bytes are kept.

use catalog::{Batch, Catalog};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{ChangeEvent, ChangeLogEntry, Clock, ResourceRecord, ResourceUri, RunId, Versions};
use store::{Store, View};

use crate::error::HarvestError;

/// What became of a resource that was to be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// It is held again, and its bytes were compared with their digest.
    Done,
    /// It was not deleted.
    NotDeleted,
    /// Nothing is known of it, or nothing was held of it.
    NothingHeld,
    /// Its bytes were collected as garbage, at this time after its deletion.
    Collected(Timestamp),
}

/// Makes what was deleted current again. The same deletion, read again, does not delete it again; a later one does.
///
/// # Errors
/// When its bytes are not there any more or are damaged, or the catalog or view cannot be written.
pub async fn restore(
    catalog: &Catalog,
    store: &Store,
    view: Option<&View>,
    clock: &dyn Clock,
    uri: &ResourceUri,
) -> Result<Restored, HarvestError> {
    let Some(record) = catalog.resource(uri).await? else { return Ok(Restored::NothingHeld) };
    if record.is_present() {
        return Ok(Restored::NotDeleted);
    }
    let Some(bitstream) = record.deleted.clone() else {
        return Ok(record.collected.map_or(Restored::NothingHeld, Restored::Collected));
    };
    // Nothing unverified is served: the bytes are read to their end before anything is said of them.
    if let Some(view) = view {
        store.lay_out(&bitstream, view, uri.clone()).await?;
    } else {
        let mut bytes = store.open_verified(&bitstream).await?;
        while bytes.try_next().await?.is_some() {}
    }
    let now = clock.now();
    let sha256 = bitstream.computed.sha256();
    let document = record.listing.document.clone();
    let record = ResourceRecord { bitstream: Some(bitstream), deleted: None, settled_at: now, ..record };
    let mut batch = Batch::new();
    batch.put_resource(uri, &record);
    if let Some(versions) = catalog.versions(uri).await? {
        // It was not held in between.
        batch.put_versions(uri, &Versions { since: Some(now), ..versions });
    }
    let event = ChangeEvent::Restored { sha256 };
    batch.append_change(&ChangeLogEntry::new(uri.clone(), event, now, RunId::fresh(), document));
    catalog.commit(batch).await?;
    Ok(Restored::Done)
}
