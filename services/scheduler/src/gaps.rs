//! Gaps: changes that do not join on to what is synchronized were never seen, so the lists have to be compared.

use catalog::Batch;
use model::{DocumentRecord, DocumentState, ProblemReason, SetId, SetRecord, Subject, Validators};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::{queue, ways};

impl Harvest {
    /// Finds the sets whose changes begin after what is synchronized, and queues their Resource Lists. Where there is none,
    /// the gap stays a problem, and the set does not move on. Returns whether anything was queued.
    pub(crate) async fn close_gaps(&mut self) -> Result<bool, HarvestError> {
        let documents = queue::documents(&self.catalog).await?;
        let mut batch = Batch::new();
        let mut queued = false;
        let gaps: Vec<(SetId, SetRecord)> = self
            .sets
            .iter()
            .filter(|(id, set)| self.has_gap(id, set, &documents))
            .map(|(id, set)| (id.clone(), set.clone()))
            .collect();
        for (id, set) in gaps {
            tracing::warn!(set.id = %id, "the changes do not join on to what is synchronized; the Resource List is read again");
            self.run.counters.gaps += 1;
            for uri in set.documents(&Capability::ResourceList) {
                let before = self.catalog.document(uri).await?;
                let mut list = queue::queued(self.run.id, &id, &Capability::ResourceList, before);
                list.validators = Validators::default();
                batch.put_document(uri, &list);
                queued = true;
            }
            if set.documents(&Capability::ResourceList).next().is_none() {
                self.keep_gap(&mut batch, &set).await?;
            }
        }
        self.commit(batch).await?;
        Ok(queued)
    }

    /// Only where no list was read in this run anyway.
    fn has_gap(&self, id: &SetId, set: &SetRecord, documents: &[(String, DocumentRecord)]) -> bool {
        let of_set = || documents.iter().map(|(_, record)| record).filter(|record| record.set == *id);
        let in_run = |record: &&DocumentRecord| record.run == self.run.id;
        let lists_read = of_set().filter(in_run).any(|record| record.capability == Capability::ResourceList);
        let changes_read = of_set()
            .filter(in_run)
            .any(|record| record.capability == Capability::ChangeList && record.state == DocumentState::Done);
        !lists_read && changes_read && !ways::joins_on(set, of_set())
    }

    async fn keep_gap(&mut self, batch: &mut Batch, set: &SetRecord) -> Result<(), HarvestError> {
        let Some(uri) = set.documents(&Capability::ChangeList).next() else { return Ok(()) };
        let subject = Subject::Document(uri.to_owned());
        let before = self.catalog.problem(&subject).await?;
        let until = set.synchronized_to.map_or("nothing".to_owned(), |moment| moment.to_string());
        let message = format!(
            "its changes begin after {until}, up to which this set is synchronized, and the Source offers no Resource List \
             to compare with: changes in between were never seen. Ask the Source's owner for a Resource List"
        );
        let problem = self.problem(before, ProblemReason::Gap, message);
        self.has_problems = true;
        batch.put_problem(&subject, &problem);
        Ok(())
    }
}
