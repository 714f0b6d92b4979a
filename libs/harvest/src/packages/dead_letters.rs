//! Dead letters: jobs on packages that no service could process.

use std::sync::Arc;
use std::time::Duration;

use bus::Filter;
use catalog::Batch;
use model::{Disposition, Evidence, Failure, ProblemReason, UnpackTask};

use super::indexes::Indexes;
use super::queue::is_open;
use super::uploads::is_worth_keeping;
use super::{InHand, Task};
use crate::dead_letters;
use crate::error::HarvestError;
use crate::harvest::Harvest;

/// Dead letters taken at a time.
const LETTERS: usize = 8;

impl Harvest {
    /// Takes the dead letters of package jobs: each gives its package up for this run.
    pub(super) async fn take_package_letters(&mut self, hand: &mut InHand) -> Result<(), HarvestError> {
        let filter = Filter::Dead(self.source.clone());
        let bus = Arc::clone(&self.bus);
        for delivery in bus.pull(&filter, LETTERS, Duration::ZERO).await? {
            let letter = dead_letters::read(&delivery);
            let mut batch = Batch::new();
            if let Some(job) = letter.id.job().and_then(|job| hand.jobs.remove(&job))
                && let Some(mut record) = self.catalog.package(&job.package).await?.filter(is_open)
            {
                let what = match job.task {
                    Task::Fetch => "receives it",
                    Task::Unpack(UnpackTask::Open { .. }) => "opens it",
                    Task::Unpack(UnpackTask::Slice { .. }) => "reads a part of it",
                };
                let message = format!(
                    "the job that {what} was given up: {}. That tells nothing against the package: the next run tries it again",
                    letter.why
                );
                let failure = Failure {
                    reason: ProblemReason::Poison,
                    message,
                    disposition: Disposition::Retry { after: None },
                    evidence: Evidence::default(),
                };
                let (seq, indexes) = (record.seq, Indexes::of_record(&record));
                record.kept = is_worth_keeping(&record, &failure);
                record.job = None;
                self.give_package_up(&mut batch, &job.package, &mut record, failure).await?;
                self.record_letter(&mut batch, letter, 0).await?;
                self.put_away(batch, &job.package, record, seq, indexes, hand).await?;
            } else {
                self.record_letter(&mut batch, letter, 0).await?;
                self.commit(batch).await?;
            }
            delivery.ack().await?;
        }
        Ok(())
    }
}
