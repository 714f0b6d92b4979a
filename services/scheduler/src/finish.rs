//! The end of a run.

use std::collections::HashSet;

use catalog::Batch;
use model::Phase;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::{queue, ways};

impl Harvest {
    /// Every change is settled or recorded as a problem: now the sets may move on.
    pub(crate) async fn finish(&mut self) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        let mut documents = queue::by_set(&self.catalog).await?;
        let mut listed = HashSet::new();
        for (id, set) in &mut self.sets {
            let documents = documents.remove(id).unwrap_or_default();
            if ways::advance(set, self.run.id, &documents) {
                batch.put_set(id, set);
            }
            if ways::is_listed(self.run.id, &documents) {
                listed.insert(id.clone());
            }
        }
        self.forget_packages(&mut batch, &listed).await?;
        self.forget_letters(&mut batch).await?;
        self.run.phase = Phase::Finished;
        self.run.finished_at = Some(self.clock.now());
        self.commit(batch).await
    }
}
