//! Gaps: the change documents do not join the synchronized time, so some changes were never read and the lists must
//! be compared.

use planning::{continuity, queued_document, strategy};
use std::fmt;

use catalog::Batch;
use model::{DocumentState, ProblemReason, SetId, SetRecord, Subject, Validators, counted};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;

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

impl Harvest {
    /// Queues the Resource Lists of sets with a gap, unless this run reads them anyway. Returns whether any was
    /// queued.
    pub(crate) async fn queue_lists(&mut self, gaps: &[SetWithGaps]) -> Result<bool, HarvestError> {
        let mut batch = Batch::new();
        for SetWithGaps { id, set, .. } in gaps {
            let Some(kind) = strategy::baseline_kind(set, self.options.prefer) else { continue };
            for uri in set.documents(&kind) {
                let before = self.catalog.document(uri).await?;
                if before.as_ref().is_some_and(|record| record.run == self.run.id) {
                    continue;
                }
                tracing::info!(set.id = %id, "changes are missing between what is synchronized and what is told; the whole set is read");
                let mut list = queued_document(self.run.id, id, &kind, before);
                list.validators = Validators::default();
                batch.put_document(uri, &list);
            }
        }
        let queued = !batch.is_empty();
        self.commit(batch).await?;
        Ok(queued)
    }

    /// Records a gap that no Resource List closes as a problem. Its set does not advance; the next run checks again.
    pub(crate) async fn record_gaps(&mut self) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        for gap in self.gaps().await? {
            let told_in = [Capability::ChangeList, Capability::ChangeDump, Capability::ChangeNotification];
            let Some(uri) = told_in.iter().find_map(|kind| gap.set.documents(kind).next()) else { continue };
            let subject = Subject::Document(uri.to_owned());
            let before = self.problem_before(&subject).await?;
            let message = gap.to_string();
            let problem = self.problem(before, ProblemReason::Gap, message);
            self.has_problems = true;
            batch.put_problem(&subject, &problem);
        }
        self.commit(batch).await
    }

    /// The sets with missing changes, after the Resource Lists of this run.
    pub(crate) async fn gaps(&self) -> Result<Vec<SetWithGaps>, HarvestError> {
        let mut documents = queue::by_set(&self.catalog).await?;
        let mut gaps = Vec::new();
        for (id, set) in &self.sets {
            let documents = documents.remove(id).unwrap_or_default();
            let changes_read = documents.iter().any(|record| {
                record.run == self.run.id
                    && strategy::is_changes(&record.capability)
                    && record.state == DocumentState::Done
            });
            if !changes_read {
                continue;
            }
            let mut set = set.clone();
            strategy::take_lists(&mut set, self.run.id, &documents);
            let missing = continuity::follow(set.synchronized_to, self.run.id, documents.iter()).gaps;
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
