//! The end of a run.

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
        for (id, set) in &mut self.sets {
            if ways::advance(set, self.run.id, &documents.remove(id).unwrap_or_default()) {
                batch.put_set(id, set);
            }
        }
        self.forget_letters(&mut batch).await?;
        self.run.phase = Phase::Finished;
        self.run.finished_at = Some(self.clock.now());
        self.commit(batch).await
    }
}
