//! The end of a run.

use planning::strategy;
use std::collections::HashSet;

use catalog::Batch;
use futures::TryStreamExt;
use model::{DocumentRecord, DocumentState, Phase, SetId, Subject};

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;

impl Harvest {
    /// Advances the sets, now that every change is settled or recorded as a problem.
    pub(crate) async fn finish(&mut self) -> Result<(), HarvestError> {
        self.judge_untold().await?;
        let mut batch = Batch::new();
        let (mut documents, notices) = queue::by_set_with_notices(&self.catalog).await?;
        let (mut listed, mut told, mut followed) = (HashSet::new(), HashSet::new(), HashSet::new());
        for (id, set) in &mut self.sets {
            let documents = documents.remove(id).unwrap_or_default();
            if strategy::advance(set, self.run.id, &documents) {
                batch.put_set(id, set);
            }
            if strategy::is_followed(set, self.run.id, &documents) {
                followed.insert(id.clone());
            }
            if strategy::is_listed(self.run.id, &documents) {
                listed.insert(id.clone());
            }
            if strategy::is_told_whole(self.run.id, &documents) {
                told.insert(id.clone());
            }
        }
        self.forget_packages(&mut batch, &listed, &followed).await?;
        self.forget_documents(&mut batch, &told, &followed).await?;
        self.forget_notices(&mut batch, notices, &followed);
        self.forget_letters(&mut batch).await?;
        self.run.phase = Phase::Finished;
        self.run.finished_at = Some(self.clock.now());
        self.commit(batch).await
    }

    /// Forgets what hubs delivered once its set is synchronized up to the end of it; unreadable deliveries once other
    /// documents cover the same changes.
    fn forget_notices(
        &self,
        batch: &mut Batch,
        notices: Vec<(String, DocumentRecord)>,
        followed: &HashSet<SetId>,
    ) {
        for (uri, record) in notices {
            let Some(set) = self.sets.get(&record.set) else { continue };
            let end = record.until_latest.max(record.until);
            let is_past = record.is_read_whole() && end <= set.synchronized_to;
            let is_told = record.run != self.run.id && followed.contains(&record.set);
            if is_past || is_told {
                batch.delete_document(&uri);
            }
            if is_told && self.has_problems {
                batch.delete_problem(&Subject::Document(uri));
            }
        }
    }

    /// Forgets a document that an earlier run could not read and this run did not request, once other documents cover
    /// its whole set. Example: a dump whose list is read. The same holds for a change document, once other documents
    /// cover all its changes.
    async fn forget_documents(
        &self,
        batch: &mut Batch,
        told: &HashSet<SetId>,
        followed: &HashSet<SetId>,
    ) -> Result<(), HarvestError> {
        if !self.has_problems || told.is_empty() && followed.is_empty() {
            return Ok(());
        }
        let mut documents = self.catalog.scan_documents().await?;
        while let Some((uri, record)) = documents.try_next().await? {
            let was_failed = record.state == DocumentState::Failed && record.run != self.run.id;
            let is_followed = strategy::is_changes(&record.capability) && followed.contains(&record.set);
            if was_failed && (is_followed || told.contains(&record.set)) {
                batch.delete_problem(&Subject::Document(uri));
            }
        }
        Ok(())
    }
}
