//! Removes the bytes of resources that were deleted long ago. The record changes first, so no record ever points to
//! missing bytes.

use catalog::{Batch, Catalog, CatalogError};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::ResourceRecord;

use crate::mark::is_due;

/// Records written in one batch.
const BATCH: usize = 500;

/// Releases the bytes of tombstones that were written before `before`. Their records get the time `now`.
pub(crate) async fn give_up(
    catalog: &Catalog,
    before: Timestamp,
    now: Timestamp,
) -> Result<u64, CatalogError> {
    let mut given_up = 0;
    let mut batch = Batch::new();
    let mut resources = catalog.scan_resources(None, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        if !is_due(&record, before) {
            continue;
        }
        batch.put_resource(&uri, &ResourceRecord { deleted: None, collected: Some(now), ..record });
        given_up += 1;
        if batch.len() >= BATCH {
            catalog.commit(std::mem::take(&mut batch)).await?;
        }
    }
    drop(resources);
    catalog.commit(batch).await?;
    Ok(given_up)
}
