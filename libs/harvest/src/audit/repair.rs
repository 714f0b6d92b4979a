//! Repairs the differences of an audit: queues exactly these, and processes them like any other pending record.

use catalog::Batch;
use model::{PendingRecord, Phase};
use planning::AbsenceCount;

use super::Audit;
use super::differences::Found;
use super::read::Audited;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::settle::subject;

/// Records per batch.
const BATCH: usize = 500;

impl Harvest {
    /// Queues the differences. Resources that no list contains follow the rules for absent resources: the absence is
    /// recorded, and the resource is deleted when it is confirmed, under the same deletion guard.
    pub(super) async fn repair(&mut self, audit: &mut Audit, sets: &[Audited]) -> Result<(), HarvestError> {
        // The owner that resumes this run after a crash works off what was queued; the next audit finds the rest.
        self.run.phase = Phase::Dispatching;
        let mut guarded = Vec::with_capacity(sets.len());
        for set in sets {
            let count = AbsenceCount { held: set.held, absent: set.to_delete, to_delete: set.to_delete };
            let is_guarded = self.deletion_guard().stops(&count);
            if is_guarded {
                self.trip(&set.lists, &count).await?;
            }
            guarded.push(is_guarded);
        }
        let before = self.run.counters.planned;
        let mut waits = vec![false; sets.len()];
        let mut batch = Batch::new();
        for found in audit.all.found()? {
            let Found { difference, plan, absent_from } = found?;
            let uri = &difference.uri;
            if let Some(plan) = plan {
                // A candidate that no list had declared may be what is declared now.
                let candidate = match self.has_problems {
                    true => self.catalog.problem(&subject(uri)).await?,
                    false => None,
                };
                let candidate = candidate.and_then(|problem| problem.evidence.candidate);
                batch.put_pending(uri, &PendingRecord { seq: self.next_seq(), candidate, ..plan });
                self.reach.note(uri);
                self.run.counters.planned += 1;
            } else if let Some(n) = absent_from
                && let Some(mut record) = self.catalog.resource(uri).await?
            {
                let (set, is_guarded) = (&sets[n], guarded[n]);
                if self.deletion_guard().is_confirmed(&record, set.lists.at) && !is_guarded {
                    // It is absent from all of them.
                    record.sets = vec![set.id.clone()];
                }
                let absent = self.run.counters.absent;
                self.settle_absence(&mut batch, &set.id, &set.lists, uri, record, is_guarded).await?;
                waits[n] |= self.run.counters.absent > absent;
            }
            if batch.len() >= BATCH {
                self.count_queued(audit, before);
                self.commit(std::mem::take(&mut batch)).await?;
            }
        }
        for (n, set) in sets.iter().enumerate().filter(|(n, _)| waits[*n]) {
            self.note_waiting(&mut batch, &set.id, &set.lists, true, guarded[n]);
        }
        self.count_queued(audit, before);
        self.commit(batch).await
    }

    fn count_queued(&mut self, audit: &mut Audit, before: u64) {
        audit.counts.queued = self.run.counters.planned - before;
        self.run.counters.audit = Some(audit.counts);
    }
}
