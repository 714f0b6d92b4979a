//! Requeues earlier failures at the start of a run.

use catalog::Batch;
use futures::TryStreamExt;
use model::{Action, PendingRecord, Provenance, Subject, Why};

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// Pending records per batch.
const BATCH: usize = 500;

impl Planner {
    /// Retries earlier failures, unless the documents of this run or notifications have newer entries. Ignored
    /// problems are skipped (docs/adr/0021), and so are resources in a cooldown that a server requested.
    pub(crate) async fn requeue_problems(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        if !ctx.problems.any {
            return Ok(());
        }
        let now = ctx.clock.now();
        // Only hub deliveries are planned before this.
        let may_be_planned = ctx.run.counters.planned > 0;
        let mut batch = Batch::new();
        let mut queued = 0;
        let mut problems = ctx.catalog().await?.scan_problems().await?;
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
            let Ok(origin) = uri.origin() else { continue };
            if may_be_planned && ctx.catalog().await?.pending(&uri).await?.is_some() {
                continue;
            }
            *self.requeued.entry(listing.document.as_ref().to_owned()).or_default() += 1;
            let account = Provenance::of(Why::Problem);
            let action = Action::Fetch { origin };
            let pending = PendingRecord {
                candidate: problem.evidence.candidate,
                repair: problem.repair,
                ..PendingRecord::new(ctx.next_seq(), action, declaration, listing, account)
            };
            ctx.put_pending(&mut batch, &uri, &pending);
            ctx.run.counters.planned += 1;
            queued += 1;
            if queued % BATCH == 0 {
                let full = std::mem::take(&mut batch);
                ctx.commit(full).await?;
            }
        }
        drop(problems);
        ctx.commit(batch).await
    }

    /// After a crash: counts the pending records of unread documents that were requeued from problems.
    pub(crate) async fn count_requeued(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let mut pending = ctx.catalog().await?.scan_pending(None).await?;
        let mut left = 0;
        while let Some((_, record)) = pending.try_next().await? {
            left += 1;
            *self.requeued.entry(record.listing.document.as_ref().to_owned()).or_default() += 1;
        }
        ctx.count_left(left);
        Ok(())
    }
}
