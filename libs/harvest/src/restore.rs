//! Undoes a deletion: the last stored version becomes current again, as long as its bytes are kept.

use catalog::{Batch, Catalog};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{ChangeEvent, ChangeLogEntry, Clock, ResourceRecord, ResourceUri, RunId, Versions};
use store::{Store, View};

use crate::error::HarvestError;

/// Result of restoring a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// It is stored again, and its bytes match their digest.
    Done,
    /// It was not deleted.
    NotDeleted,
    /// It is unknown, or it was never stored.
    NothingStored,
    /// Garbage collection removed its bytes, at this time after its deletion.
    Collected(Timestamp),
}

/// Makes a deleted resource current again. The same deletion, read again, does not delete it again; a later one does.
///
/// # Errors
/// When its bytes are gone or damaged, or the catalog or view cannot be written.
pub async fn restore(
    catalog: &Catalog,
    store: &Store,
    view: Option<&View>,
    clock: &dyn Clock,
    uri: &ResourceUri,
) -> Result<Restored, HarvestError> {
    let Some(record) = catalog.resource(uri).await? else { return Ok(Restored::NothingStored) };
    if record.is_present() {
        return Ok(Restored::NotDeleted);
    }
    let Some(bitstream) = record.deleted.clone() else {
        return Ok(record.collected.map_or(Restored::NothingStored, Restored::Collected));
    };
    // Unverified bytes are never served: all of them are read before the result is returned.
    if let Some(view) = view {
        store.write_view(&bitstream, view, uri.clone()).await?;
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
        // The resource was not stored in between.
        batch.put_versions(uri, &Versions { since: Some(now), ..versions });
    }
    let event = ChangeEvent::Restored { sha256 };
    batch.append_change(&ChangeLogEntry::new(uri.clone(), event, now, RunId::fresh(), document));
    catalog.commit(batch).await?;
    Ok(Restored::Done)
}
