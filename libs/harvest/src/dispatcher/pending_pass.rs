//! One pass over the pending records.

use std::collections::HashMap;

use catalog::{Catalog, PendingScan};
use futures::TryStreamExt;
use model::{Origin, PendingRecord, ResourceUri};
use planning::READ_AHEAD;

use crate::error::HarvestError;

/// State of one pass.
pub(crate) struct PendingPass {
    scan: Option<PendingScan>,
    /// Deletions that were met and are not settled yet.
    pub(crate) deletions: Vec<(ResourceUri, Box<PendingRecord>)>,
    /// Records of mirrors that are left out, which need another place.
    pub(crate) misplaced: Vec<(ResourceUri, Box<PendingRecord>)>,
    /// How many resources are tried at mirrors of which nothing is known yet.
    tried: HashMap<Origin, u32>,
    /// Records that wait for such a trial.
    waiting: usize,
}

impl PendingPass {
    /// A pass over all pending records, in the order of URIs.
    pub(crate) async fn over(catalog: &Catalog) -> Result<Self, HarvestError> {
        let scan = Some(catalog.scan_pending(None).await?);
        Ok(Self { scan, deletions: Vec::new(), misplaced: Vec::new(), tried: HashMap::new(), waiting: 0 })
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

    /// Whether another resource may be requested at a mirror that may be asked for `most` of them until more is known
    /// of it. If too many wait for that, the pass ends, rather than to read all others meanwhile.
    pub(crate) fn may_try(&mut self, mirror: &Origin, most: u32) -> bool {
        let tried = self.tried.entry(mirror.clone()).or_default();
        if *tried < most {
            *tried += 1;
            return true;
        }
        self.waiting += 1;
        if self.waiting >= READ_AHEAD {
            self.scan = None;
        }
        false
    }

    /// Whether all records were returned.
    pub(crate) fn is_over(&self) -> bool {
        self.scan.is_none()
    }
}
