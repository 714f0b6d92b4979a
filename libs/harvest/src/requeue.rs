//! Requeues earlier failures at the start of a run.

use catalog::Batch;
use futures::TryStreamExt;
use model::{Account, Action, PendingRecord, Subject, Why};

use crate::error::HarvestError;
use crate::harvest::{Harvest, Left};

/// Pending records per batch.
const BATCH: usize = 500;

impl Harvest {
    /// Retries earlier failures, unless the documents of this run or notifications have newer entries. Ignored
    /// problems are skipped (docs/adr/0021), and so are resources in a cooldown that a server requested.
    pub(crate) async fn requeue_problems(&mut self) -> Result<(), HarvestError> {
        if !self.has_problems {
            return Ok(());
        }
        let now = self.clock.now();
        // Only hub deliveries are planned before this.
        let may_be_planned = self.run.counters.planned > 0;
        let mut batch = Batch::new();
        let mut queued = 0;
        let mut problems = self.catalog.scan_problems().await?;
        while let Some((subject, problem)) = problems.try_next().await? {
            if problem.ignored.is_some() || problem.next_attempt_at.is_some_and(|next| next > now) {
                continue;
            }
            let (Subject::Resource(uri), Some(declaration), Some(listing)) =
                (subject, problem.declaration, problem.listing)
            else {
                continue;
            };
            let Ok(uri) = model::ResourceUri::try_from(uri) else { continue };
            let Ok(lane) = uri.lane() else { continue };
            if may_be_planned && self.catalog.pending(&uri).await?.is_some() {
                continue;
            }
            *self.requeued.entry(listing.document.as_ref().to_owned()).or_default() += 1;
            let pending = PendingRecord {
                seq: self.seq.next(),
                action: Action::Fetch { lane },
                declaration,
                listing,
                attempts: 0,
                next_attempt_at: None,
                candidate: problem.evidence.candidate,
                mend: problem.mend,
                account: Account::of(Why::Problem),
            };
            self.seq = pending.seq;
            batch.put_pending(&uri, &pending);
            self.reach.note(&uri);
            self.run.counters.planned += 1;
            queued += 1;
            if queued % BATCH == 0 {
                let full = std::mem::take(&mut batch);
                self.commit(full).await?;
            }
        }
        drop(problems);
        self.commit(batch).await
    }

    /// After a crash: counts the pending records of unread documents that were requeued from problems.
    pub(crate) async fn count_requeued(&mut self) -> Result<(), HarvestError> {
        let mut pending = self.catalog.scan_pending(None).await?;
        self.left = Left { pending: 0, planned: self.run.counters.planned };
        while let Some((_, record)) = pending.try_next().await? {
            self.left.pending += 1;
            *self.requeued.entry(record.listing.document.as_ref().to_owned()).or_default() += 1;
        }
        Ok(())
    }
}
