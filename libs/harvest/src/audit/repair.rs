//! Repairs the differences of an audit: queues exactly these, and processes them like any other pending record.

use catalog::Batch;
use model::{PendingRecord, Phase};
use planning::AbsenceCount;

use super::Audit;
use super::differences::Found;
use super::read::Audited;
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;
use crate::run::problems::subject;

/// Records per batch.
const BATCH: usize = 500;

/// Queues the differences. Resources that no list contains follow the rules for absent resources: the absence is
/// recorded, and the resource is deleted when it is confirmed, under the same deletion guard.
pub(crate) async fn repair(
    ctx: &mut RunContext,
    planner: &mut Planner,
    audit: &mut Audit,
    sets: &[Audited],
) -> Result<(), HarvestError> {
    // The owner that resumes this run after a crash works off what was queued; the next audit finds the rest.
    ctx.run.phase = Phase::Dispatching;
    let mut guarded = Vec::with_capacity(sets.len());
    for set in sets {
        let count = AbsenceCount { held: set.held, absent: set.to_delete, to_delete: set.to_delete };
        let is_guarded = ctx.deletion_guard().stops(&count);
        if is_guarded {
            planner.trip(ctx, &set.lists, &count).await?;
        }
        guarded.push(is_guarded);
    }
    let before = ctx.run.counters.planned;
    let mut waits = vec![false; sets.len()];
    let mut batch = Batch::new();
    for found in audit.all.found()? {
        let Found { difference, plan, absent_from } = found?;
        let uri = &difference.uri;
        if let Some(plan) = plan {
            // A candidate that no list had declared may be what is declared now.
            let candidate =
                if ctx.problems.any { ctx.catalog().await?.problem(&subject(uri)).await? } else { None };
            let candidate = candidate.and_then(|problem| problem.evidence.candidate);
            let pending = PendingRecord { seq: ctx.next_seq(), candidate, ..plan };
            ctx.put_pending(&mut batch, uri, &pending);
            ctx.run.counters.planned += 1;
        } else if let Some(n) = absent_from
            && let Some(mut record) = ctx.catalog().await?.resource(uri).await?
        {
            let set = &sets[n];
            let is_guarded = guarded[n];
            if ctx.deletion_guard().is_confirmed(&record, set.lists.at) && !is_guarded {
                // It is absent from all of them.
                record.sets = vec![set.id.clone()];
            }
            let absent = ctx.run.counters.absent;
            planner.settle_absence(ctx, &mut batch, &set.lists, uri, record, is_guarded).await?;
            waits[n] |= ctx.run.counters.absent > absent;
        }
        if batch.len() >= BATCH {
            count_queued(ctx, audit, before);
            ctx.commit(std::mem::take(&mut batch)).await?;
        }
    }
    for (n, set) in sets.iter().enumerate().filter(|(n, _)| waits[*n]) {
        planner.note_waiting(ctx, &mut batch, &set.id, &set.lists, true, guarded[n]);
    }
    count_queued(ctx, audit, before);
    ctx.commit(batch).await
}

fn count_queued(ctx: &mut RunContext, audit: &mut Audit, before: u64) {
    audit.counts.queued = ctx.run.counters.planned - before;
    ctx.run.counters.audit = Some(audit.counts);
}
