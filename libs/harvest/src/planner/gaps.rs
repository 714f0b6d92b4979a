//! Gaps: the change documents do not join the synchronized time, so some changes were never read and the lists must
//! be compared.

use std::fmt;

use catalog::Batch;
use model::{DocumentState, ProblemReason, SetId, SetRecord, Subject, Validators, counted};
use planning::{continuity, queued_document, strategy};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::{RunContext, document_queue};

/// Gaps that a message names.
const SHOWN: usize = 3;

/// A set with missing changes.
#[derive(Debug)]
pub(crate) struct SetWithGaps {
    pub(crate) id: SetId,
    /// The set, advanced by the Resource Lists of this run.
    pub(crate) set: SetRecord,
    pub(crate) gaps: Vec<continuity::Gap>,
}

impl Planner {
    /// Queues the Resource Lists of sets with a gap, unless this run reads them anyway. Returns whether any was
    /// queued.
    pub(crate) async fn queue_lists(
        &mut self,
        ctx: &mut RunContext,
        gaps: &[SetWithGaps],
    ) -> Result<bool, HarvestError> {
        let mut batch = Batch::new();
        for SetWithGaps { id, set, .. } in gaps {
            let Some(kind) = strategy::baseline_kind(set, ctx.options.prefer) else { continue };
            for uri in set.documents(&kind) {
                let before = ctx.catalog().await?.document(uri).await?;
                if before.as_ref().is_some_and(|record| record.run == ctx.run.id) {
                    continue;
                }
                tracing::info!(set.id = %id, "changes are missing between what is synchronized and what is told; the whole set is read");
                let mut list = queued_document(ctx.run.id, id, &kind, before);
                list.validators = Validators::default();
                batch.put_document(uri, &list);
            }
        }
        let queued = !batch.is_empty();
        ctx.commit(batch).await?;
        Ok(queued)
    }

    /// Records a gap that no Resource List closes as a problem. Its set does not advance; the next run checks again.
    pub(crate) async fn record_gaps(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        for gap in self.gaps(ctx).await? {
            let told_in = [Capability::ChangeList, Capability::ChangeDump, Capability::ChangeNotification];
            let Some(uri) = told_in.iter().find_map(|kind| gap.set.documents(kind).next()) else { continue };
            let subject = Subject::Document(uri.to_owned());
            let before = ctx.problem_before(&subject).await?;
            let message = gap.to_string();
            let problem = ctx.problem(before, ProblemReason::Gap, message);
            ctx.put_problem(&mut batch, &subject, &problem);
        }
        ctx.commit(batch).await
    }

    /// The sets with missing changes, after the Resource Lists of this run.
    pub(crate) async fn gaps(&self, ctx: &mut RunContext) -> Result<Vec<SetWithGaps>, HarvestError> {
        let mut documents = document_queue::by_set(&*ctx.catalog().await?).await?;
        let mut gaps = Vec::new();
        for (id, set) in &ctx.sets {
            let documents = documents.remove(id).unwrap_or_default();
            let changes_read = documents.iter().any(|record| {
                record.run == ctx.run.id
                    && strategy::is_changes(&record.capability)
                    && record.state == DocumentState::Done
            });
            if !changes_read {
                continue;
            }
            let mut set = set.clone();
            strategy::take_lists(&mut set, ctx.run.id, &documents);
            let missing = continuity::follow(set.synchronized_to, ctx.run.id, documents.iter()).gaps;
            if !missing.is_empty() {
                gaps.push(SetWithGaps { id: id.clone(), set, gaps: missing });
            }
        }
        Ok(gaps)
    }
}

impl fmt::Display for SetWithGaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no change document covers the time ")?;
        for (n, gap) in self.gaps.iter().take(SHOWN).enumerate() {
            let and = if n == 0 { "" } else { ", and " };
            write!(f, "{and}between {} and {}", gap.after, gap.before)?;
        }
        if let more @ 1.. = self.gaps.len().saturating_sub(SHOWN) {
            write!(f, ", and in {}", counted(more as u64, "more interval", "more intervals"))?;
        }
        f.write_str(
            ", and no Resource List of a later time closes the gap. A newer Resource List of the Source will settle it",
        )
    }
}
