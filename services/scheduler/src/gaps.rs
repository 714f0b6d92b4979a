//! Gaps: the change documents do not join the synchronized time, so some changes were never read and the lists must
//! be compared.

use std::fmt;

use catalog::Batch;
use model::{DocumentState, ProblemReason, SetId, SetRecord, Subject, Validators, counted};
use resourcesync::Capability;

use crate::continuity::{self, Hole};
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::{queue, ways};

/// Gaps that a message names.
const SHOWN: usize = 3;

/// A set with missing changes.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) id: SetId,
    /// The set, advanced by the Resource Lists of this run.
    pub(crate) set: SetRecord,
    pub(crate) holes: Vec<Hole>,
}

impl Harvest {
    /// Queues the Resource Lists of sets with a gap, unless this run reads them anyway. Returns whether any was
    /// queued.
    pub(crate) async fn queue_lists(&mut self, gaps: &[Gap]) -> Result<bool, HarvestError> {
        let mut batch = Batch::new();
        for Gap { id, set, .. } in gaps {
            let Some(kind) = ways::baseline_kind(set, self.options.prefer) else { continue };
            for uri in set.documents(&kind) {
                let before = self.catalog.document(uri).await?;
                if before.as_ref().is_some_and(|record| record.run == self.run.id) {
                    continue;
                }
                tracing::info!(set.id = %id, "changes are missing between what is synchronized and what is told; the whole set is read");
                let mut list = queue::queued(self.run.id, id, &kind, before);
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
    pub(crate) async fn gaps(&self) -> Result<Vec<Gap>, HarvestError> {
        let mut documents = queue::by_set(&self.catalog).await?;
        let mut gaps = Vec::new();
        for (id, set) in &self.sets {
            let documents = documents.remove(id).unwrap_or_default();
            let changes_read = documents.iter().any(|record| {
                record.run == self.run.id
                    && ways::is_changes(&record.capability)
                    && record.state == DocumentState::Done
            });
            if !changes_read {
                continue;
            }
            let mut set = set.clone();
            ways::take_lists(&mut set, self.run.id, &documents);
            let holes = continuity::follow(set.synchronized_to, self.run.id, documents.iter()).holes;
            if !holes.is_empty() {
                gaps.push(Gap { id: id.clone(), set, holes });
            }
        }
        Ok(gaps)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing tells what changed ")?;
        for (n, hole) in self.holes.iter().take(SHOWN).enumerate() {
            let and = if n == 0 { "" } else { ", and " };
            write!(f, "{and}between {} and {}", hole.after, hole.before)?;
        }
        if let more @ 1.. = self.holes.len().saturating_sub(SHOWN) {
            write!(f, ", and in {}", counted(more as u64, "more interval", "more intervals"))?;
        }
        f.write_str(
            ": the Change Lists leave that out, and no Resource List of a later moment closes the gap, so these changes were never \
             seen. A newer Resource List of the Source will settle it",
        )
    }
}
