//! Executes a run that is a task, and no sync (docs/adr/0080).
//!
//! A task needs the catalog for itself, as a sync does, so it has the Source's lease and a place. Its requests have the
//! Source's terms: each takes a permit of its origin in the whole fleet.

use std::time::Duration;

use ::backfill::Checkpoint;
use control::{ControlError, InSync, RunWait, Task, TaskProgress};
use futures::future::BoxFuture;
use harvest::HarvestError;
use planning::HarvestOptions;
use tokio_util::sync::CancellationToken;
use web::Client;

use super::attend::Attended;
use super::{RunExecutor, RunExit};
use crate::run_retry::{self, RunRetry};

/// How long a run that leaves its place has for the end of its batch. After that it is dropped, and resumed like one
/// whose process died. Doubled for a task each time in a row that it came to no end, so that a slow origin does not keep
/// it from any progress.
const FIRST_LEAVING: Duration = Duration::from_secs(10);
/// Doublings of that time, to 640 seconds.
const MOST_DOUBLINGS: u32 = 6;

/// How a task ended by itself.
#[derive(Debug)]
pub(super) enum TaskEnd {
    /// It is done, and whether nothing failed.
    Done { is_clean: bool },
    /// The operator must act before it can be done.
    Refused(String),
    /// The control store failed, or refused.
    Control(ControlError),
}

/// One attempt at a task.
pub(super) type Attempt = BoxFuture<'static, Result<TaskEnd, HarvestError>>;

impl RunExecutor<'_> {
    /// Executes the task until it is left.
    pub(super) async fn execute_task(
        mut self,
        task: &Task,
        client: Client,
        options: &HarvestOptions,
    ) -> Result<RunExit, ControlError> {
        let before = self.checkpoint();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let stop = CancellationToken::new();
            let work = match task {
                Task::Backfill(wanted) => self.backfilling(wanted, client.clone(), options, stop.clone()),
                Task::Move { to } => self.moving(to),
                Task::MoveBack { to } => self.moving_back(to),
            };
            let error = match self.attend(work, &stop).await? {
                Attended::RunExit(left) => return Ok(left),
                Attended::Ended(Ok(end)) => return self.end_task(task, end).await,
                Attended::Ended(Err(error)) => error,
            };
            let now = self.context.clock.now();
            let waited = self.waited.as_ref().filter(|_| self.checkpoint() == before);
            match run_retry::next(&error, attempt, waited, now) {
                RunRetry::Lost => return Ok(RunExit::Lost),
                RunRetry::Stopped if self.leaves_since.is_some() && !self.keep.is_cancelled() => {
                    let wait = RunWait::turn(waited, now);
                    return self.park(wait).await;
                }
                RunRetry::Stopped => return self.stopped().await,
                RunRetry::Fail => return self.fail(error.to_string()).await,
                RunRetry::Park(wait) => return self.park(wait).await,
                RunRetry::Again(wait) => {
                    tracing::warn!(run.id = %self.id, %error, again_in_ms = wait.as_millis(), "the task waits");
                    self.waits_for = Some(error.to_string());
                    let waiting = async {
                        tokio::time::sleep(wait).await;
                        Ok::<_, HarvestError>(())
                    };
                    if let Attended::RunExit(left) = self.attend(waiting, &CancellationToken::new()).await? {
                        return Ok(left);
                    }
                    self.waits_for = None;
                }
            }
        }
    }

    async fn end_task(&self, task: &Task, end: TaskEnd) -> Result<RunExit, ControlError> {
        let is_clean = match end {
            TaskEnd::Done { is_clean } => is_clean,
            TaskEnd::Refused(why) => return self.fail(why).await,
            TaskEnd::Control(error) if error.is_temporary() => return Err(error),
            TaskEnd::Control(error) => return self.fail(error.to_string()).await,
        };
        tracing::info!(run.id = %self.id, is_clean, "the task is finished");
        let (progress, now) = (self.progress_now(), self.context.clock.now());
        self.runs().finish(self.lease, self.id, progress, InSync(is_clean), now).await?;
        self.context.metrics.ended("task");
        if matches!(task, Task::Move { .. } | Task::MoveBack { .. }) {
            self.remove_left_spec().await;
        }
        Ok(RunExit::Settled)
    }

    /// How long it may take to leave its place.
    pub(super) fn longest_leaving(&self) -> Duration {
        // A service that stops, or a Source that is another scheduler's now, does not wait for long.
        let may_double = self.is_task() && !self.keep.is_cancelled();
        let tries = self.waited.as_ref().filter(|_| may_double).map_or(0, |wait| wait.tries);
        FIRST_LEAVING.saturating_mul(1 << tries.min(MOST_DOUBLINGS))
    }

    /// How far a backfill is.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        match &*self.task.borrow() {
            Some(TaskProgress::Backfill { after, counts }) => {
                Checkpoint { after: after.clone(), counts: counts.clone() }
            }
            None => Checkpoint::default(),
        }
    }
}
