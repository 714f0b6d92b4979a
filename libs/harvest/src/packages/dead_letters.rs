//! Dead letters: jobs on packages that no service could process.

use bus::Delivery;
use catalog::Batch;
use model::{Disposition, Evidence, Failure, ProblemReason, UnpackTask};

use super::indexes::Indexes;
use super::queue::is_open;
use super::uploads::is_worth_keeping;
use super::{PackageWork, Task, outcome};
use crate::dispatcher::dead_letters;
use crate::error::HarvestError;
use crate::run::RunContext;

impl PackageWork {
    /// Settles dead letters: each of a package job gives its package up for this run.
    pub(crate) async fn settle_dead_letters(
        &mut self,
        ctx: &mut RunContext,
        deliveries: Vec<Delivery>,
    ) -> Result<(), HarvestError> {
        for delivery in deliveries {
            let letter = dead_letters::read(&delivery);
            let mut batch = Batch::new();
            if let Some(job) = letter.id.job().and_then(|job| self.jobs.remove(&job))
                && let Some(mut record) = ctx.catalog().await?.package(&job.package).await?.filter(is_open)
            {
                let what = match job.task {
                    Task::Fetch => "receives it",
                    Task::Unpack(UnpackTask::Open { .. }) => "opens it",
                    Task::Unpack(UnpackTask::Slice { .. }) => "reads a part of it",
                };
                let message = format!(
                    "the job that {what} became a dead letter: {}. The next run retries the package",
                    letter.why
                );
                let failure = Failure {
                    reason: ProblemReason::Poison,
                    message,
                    disposition: Disposition::Retry { after: None },
                    evidence: Evidence::default(),
                };
                let seq = record.seq;
                let indexes = Indexes::of_record(&record);
                record.kept = is_worth_keeping(&record, &failure);
                record.job = None;
                outcome::give_package_up(ctx, &mut batch, &job.package, &mut record, failure).await?;
                dead_letters::record_letter(ctx, &mut batch, letter, 0).await?;
                self.put_away(ctx, batch, &job.package, record, seq, indexes).await?;
            } else {
                dead_letters::record_letter(ctx, &mut batch, letter, 0).await?;
                ctx.commit(batch).await?;
            }
            delivery.ack().await?;
        }
        Ok(())
    }
}
