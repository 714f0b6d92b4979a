//! Gaps: changes that do not join on to what is synchronized were never seen, so the lists have to be compared.

use catalog::Batch;
use model::{DocumentRecord, DocumentState, ProblemReason, SetId, SetRecord, Subject, Validators};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::{queue, ways};

impl Harvest {
    /// Queues the Resource Lists of sets with a gap, where they are not read in this run anyway. Returns whether anything
    /// was queued.
    pub(crate) async fn queue_lists(&mut self, gaps: &[(SetId, SetRecord)]) -> Result<bool, HarvestError> {
        let mut batch = Batch::new();
        for (id, set) in gaps {
            for uri in set.documents(&Capability::ResourceList) {
                let before = self.catalog.document(uri).await?;
                if before.as_ref().is_some_and(|record| record.run == self.run.id) {
                    continue;
                }
                tracing::info!(set.id = %id, "changes do not join on to what is synchronized; the Resource List is read");
                let mut list = queue::queued(self.run.id, id, &Capability::ResourceList, before);
                list.validators = Validators::default();
                batch.put_document(uri, &list);
            }
        }
        let queued = !batch.is_empty();
        self.commit(batch).await?;
        Ok(queued)
    }

    /// A gap that no Resource List closes is a problem, and its set does not move on: the next run looks again.
    pub(crate) async fn record_gaps(&mut self) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        for (_, set) in self.gaps().await? {
            let Some(uri) = set.documents(&Capability::ChangeList).next() else { continue };
            let subject = Subject::Document(uri.to_owned());
            let before = self.catalog.problem(&subject).await?;
            let reached = set.synchronized_to.map_or("nothing".to_owned(), |moment| moment.to_string());
            let message = format!(
                "its changes begin after {reached}, up to which this set is synchronized, and no Resource List of a later \
                 moment closes the gap: changes in between were never seen. A newer Resource List of the Source will \
                 settle it"
            );
            let problem = self.problem(before, ProblemReason::Gap, message);
            self.has_problems = true;
            batch.put_problem(&subject, &problem);
        }
        self.commit(batch).await
    }

    /// The sets whose changes do not join on, each with what it would be synchronized to after this run's lists.
    pub(crate) async fn gaps(&self) -> Result<Vec<(SetId, SetRecord)>, HarvestError> {
        let documents: Vec<DocumentRecord> =
            queue::documents(&self.catalog).await?.into_iter().map(|(_, record)| record).collect();
        let mut gaps = Vec::new();
        for (id, set) in &self.sets {
            let of_set = || documents.iter().filter(|record| record.set == *id);
            let in_run = || of_set().filter(|record| record.run == self.run.id);
            let changes_read = in_run().any(|record| {
                record.capability == Capability::ChangeList && record.state == DocumentState::Done
            });
            let mut reached = set.clone();
            ways::advance(
                &mut reached,
                in_run().filter(|record| record.capability == Capability::ResourceList),
            );
            if changes_read && !ways::joins_on(&reached, of_set()) {
                gaps.push((id.clone(), reached));
            }
        }
        Ok(gaps)
    }
}
