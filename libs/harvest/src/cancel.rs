//! Cancels a run: drops its pending records. The next run plans them again.

use catalog::{Batch, Catalog};
use futures::TryStreamExt;
use model::{Clock, DocumentState, Phase, RunRecord, Validators};

use crate::error::HarvestError;

/// Pending records dropped per batch.
const BATCH: usize = 500;

/// Ends the interrupted run, if there is one. Settled records stay; pending records are dropped. No set advances, and
/// the next run reads the documents of this run again, so no entry is lost. May be repeated after a crash.
///
/// # Errors
/// When the catalog fails.
pub async fn cancel(catalog: &Catalog, clock: &dyn Clock) -> Result<Option<RunRecord>, HarvestError> {
    let Some(mut run) = catalog.last_run().await?.filter(|run| run.phase != Phase::Finished) else {
        return Ok(None);
    };
    // Documents first: a document without pending records must not count as settled.
    let mut batch = Batch::new();
    let mut documents = catalog.scan_documents().await?;
    while let Some((uri, mut record)) = documents.try_next().await? {
        if record.run == run.id {
            // The changes of this document are dropped with the rest. Of a list without `from`, only the first change
            // counts as read from now on. If later changes fall off its end before the next run, that is a gap.
            if record.state == DocumentState::Done {
                record.latest_change = record.oldest_change;
            }
            record.validators = Validators::default();
            record.state = DocumentState::Failed;
            batch.put_document(&uri, &record);
        }
    }
    drop(documents);
    catalog.commit(batch).await?;
    loop {
        let mut batch = Batch::new();
        let mut dropped = 0;
        let mut pending = catalog.scan_pending(None).await?;
        while dropped < BATCH
            && let Some((uri, _)) = pending.try_next().await?
        {
            batch.delete_pending(&uri);
            dropped += 1;
        }
        drop(pending);
        if dropped == 0 {
            break;
        }
        catalog.commit(batch).await?;
    }
    run.phase = Phase::Finished;
    run.cancelled = true;
    run.finished_at = Some(clock.now());
    let mut batch = Batch::new();
    batch.put_run(&run);
    catalog.commit(batch).await?;
    Ok(Some(run))
}
