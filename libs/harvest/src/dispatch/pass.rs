//! One pass over the pending records.

use std::collections::VecDeque;

use catalog::{Catalog, PendingScan};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{PendingRecord, ResourceUri};
use tokio::time::Instant;

use crate::error::HarvestError;
use crate::fresh::Fresh;

/// State of one pass.
pub(super) struct Pass {
    /// The first pending records, as far as they are in memory.
    fresh: VecDeque<(ResourceUri, Box<PendingRecord>)>,
    /// Scan of the records after these.
    scan: Option<PendingScan>,
    pub(super) deletions: Vec<(ResourceUri, Box<PendingRecord>)>,
    /// The earliest time at which a postponed record is due.
    pub(super) due: Option<Timestamp>,
    /// Whether a record was left for another pass.
    pub(super) left: bool,
    /// When dead letters were last polled.
    pub(super) letters_at: Instant,
    /// When a job was last sent or an outcome last received.
    pub(super) heard_at: Instant,
}

impl Pass {
    /// A pass over all pending records: first those in memory, then the others.
    pub(super) async fn over(catalog: &Catalog, fresh: &mut Fresh) -> Result<Self, HarvestError> {
        let fresh = fresh.take(catalog.pending_written());
        let scan = Some(catalog.scan_pending(fresh.back().map(|(last, _)| last)).await?);
        let (letters_at, heard_at) = (Instant::now(), Instant::now());
        Ok(Self { fresh, scan, deletions: Vec::new(), due: None, left: false, letters_at, heard_at })
    }

    /// The next pending record; none after the last.
    pub(super) async fn next(&mut self) -> Result<Option<(ResourceUri, Box<PendingRecord>)>, HarvestError> {
        if let Some(next) = self.fresh.pop_front() {
            return Ok(Some(next));
        }
        // The buffer has some megabytes, and the pass may last for hours.
        self.fresh = VecDeque::new();
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let next = scan.try_next().await?;
        if next.is_none() {
            self.scan = None;
        }
        Ok(next.map(|(uri, record)| (uri, Box::new(record))))
    }

    /// Whether all records were returned.
    pub(super) fn is_over(&self) -> bool {
        self.scan.is_none()
    }
}

#[cfg(test)]
mod tests {
    use catalog::{Batch, CatalogConfig};
    use store::Store;

    use super::*;
    use crate::fresh::tests::plan;

    async fn planned(fresh: &mut Fresh, numbers: impl Iterator<Item = u64>) -> Catalog {
        let store = Store::in_memory().object_store();
        let catalog = Catalog::open(store, "catalogs/a", CatalogConfig::default()).await.unwrap();
        let mut batch = Batch::new();
        for (uri, record) in numbers.map(plan) {
            batch.put_pending(&uri, &record);
            fresh.note(uri, record);
        }
        catalog.commit(batch).await.unwrap();
        catalog
    }

    async fn rest_of(mut pass: Pass) -> Vec<(ResourceUri, Box<PendingRecord>)> {
        let mut met = Vec::new();
        while let Some(next) = pass.next().await.unwrap() {
            met.push(next);
        }
        met
    }

    /// More than are kept.
    const MANY: u64 = 16_384 + 300;

    #[tokio::test]
    async fn every_plan_is_met_once_in_order_and_the_first_are_not_read_back() {
        let mut fresh = Fresh::since(0);
        let catalog = planned(&mut fresh, 0..MANY).await;
        let pass = Pass::over(&catalog, &mut fresh).await.unwrap();
        assert_eq!(pass.fresh.len(), 16_384);
        assert_eq!(rest_of(pass).await, (0..MANY).map(plan).collect::<Vec<_>>());
        let again = Pass::over(&catalog, &mut fresh).await.unwrap();
        assert!(again.fresh.is_empty());
        assert_eq!(rest_of(again).await.len() as u64, MANY, "the next pass reads all that is left");
    }

    #[tokio::test]
    async fn what_somebody_else_has_planned_among_them_is_met_too() {
        let mut fresh = Fresh::since(0);
        let catalog = planned(&mut fresh, (0..10).filter(|n| *n != 4)).await;
        let mut batch = Batch::new();
        let (uri, record) = plan(4);
        batch.put_pending(&uri, &record);
        catalog.commit(batch).await.unwrap();
        let pass = Pass::over(&catalog, &mut fresh).await.unwrap();
        assert_eq!(rest_of(pass).await, (0..10).map(plan).collect::<Vec<_>>());
    }
}
