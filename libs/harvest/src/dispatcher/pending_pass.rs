//! One pass over the pending records.

use catalog::{Catalog, PendingScan};
use futures::TryStreamExt;
use model::{PendingRecord, ResourceUri};

use crate::error::HarvestError;

/// State of one pass.
pub(crate) struct PendingPass {
    scan: Option<PendingScan>,
    /// Deletions that were met and are not settled yet.
    pub(crate) deletions: Vec<(ResourceUri, Box<PendingRecord>)>,
}

impl PendingPass {
    /// A pass over all pending records, in the order of URIs.
    pub(crate) async fn over(catalog: &Catalog) -> Result<Self, HarvestError> {
        Ok(Self { scan: Some(catalog.scan_pending(None).await?), deletions: Vec::new() })
    }

    /// The next pending record; none after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<(ResourceUri, Box<PendingRecord>)>, HarvestError> {
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let next = scan.try_next().await?;
        if next.is_none() {
            self.scan = None;
        }
        Ok(next.map(|(uri, record)| (uri, Box::new(record))))
    }

    /// Whether all records were returned.
    pub(crate) fn is_over(&self) -> bool {
        self.scan.is_none()
    }
}
