//! The end of a run.

use catalog::Batch;
use futures::TryStreamExt;
use model::Phase;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::ways;

impl Harvest {
    /// Every change is settled or recorded as a problem: now the sets may move on.
    pub(crate) async fn finish(&mut self) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        let mut documents = self.catalog.scan_documents().await?;
        let mut read = Vec::new();
        while let Some((_, record)) = documents.try_next().await? {
            if record.run == self.run.id {
                read.push(record);
            }
        }
        for (id, set) in &mut self.sets {
            if ways::advance(set, read.iter().filter(|record| record.set == *id)) {
                batch.put_set(id, set);
            }
        }
        self.run.phase = Phase::Finished;
        self.run.finished_at = Some(self.clock.now());
        self.commit(batch).await
    }
}
