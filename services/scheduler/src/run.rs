//! Executes one run of a Source, from its start to its end or until another scheduler must continue it.

mod attend;
mod backfill;
mod finish;
mod harvesting;
mod leave;
mod moving;
mod task;
mod terms;

use control::{
    ControlError, DesiredState, Lease, PollState, Problems, Run, RunState, RunWait, Runs, SourceSpec, Task,
    TaskProgress, Versioned,
};
use harvest::{HarvestError, Progress};
use model::{Counters, RunId};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use terms::{client, with_neighbours};

use crate::context::SchedulerContext;
use crate::due::was_poll;
use crate::meter::Meter;
use crate::notifier::channels;
use crate::places::Place;
use crate::run_options;
use crate::run_retry::{self, RunRetry};
use attend::Attended;

/// How a run was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunExit {
    /// It is over, or waits for the operator.
    Settled,
    /// Another scheduler owns the Source now.
    Lost,
    /// It waits, and has left its place.
    Parked,
    /// This service stops; the next owner continues.
    Stopping,
    /// The requested transition is not possible now, and is retried after a while.
    Later,
}

/// A run that the Source's owner executes.
pub(crate) struct RunExecutor<'a> {
    context: &'a SchedulerContext,
    lease: &'a Lease,
    /// Cancelled when this scheduler must release the Source.
    keep: &'a CancellationToken,
    /// Cancelled when a task must leave its place to a sync of the Source.
    preempt: &'a CancellationToken,
    place: &'a mut Place,
    source: Versioned<SourceSpec>,
    id: RunId,
    /// What it does, if it is no sync.
    kind: Option<Task>,
    /// Why it waited before, if it did.
    waited: Option<RunWait>,
    /// Since when it is to leave its place to others.
    leaves_since: Option<Instant>,
    progress: watch::Sender<Progress>,
    /// How far the task is.
    task: watch::Sender<Option<TaskProgress>>,
    meter: Meter,
    /// The problems of the Source, once counted.
    problems: Option<Problems>,
    /// The title that discovery proposes, once the run has finished.
    title: Option<String>,
    /// What a poll may compare in place of the next run, once this one has finished.
    poll: Option<PollState>,
    /// Why it is blocked at the moment.
    waits_for: Option<String>,
}

impl<'a> RunExecutor<'a> {
    pub(crate) fn new(
        context: &'a SchedulerContext,
        lease: &'a Lease,
        source: Versioned<SourceSpec>,
        run: &Run,
        preempt: &'a CancellationToken,
        keep: &'a CancellationToken,
        place: &'a mut Place,
    ) -> Self {
        let progress = watch::Sender::new(Progress::default());
        let meter = Meter::new(context.metrics.clone(), source.id.clone(), &run.progress.counters);
        Self {
            context,
            lease,
            keep,
            preempt,
            place,
            source,
            id: run.spec.id,
            kind: run.spec.task.clone(),
            waited: run.waiting.clone(),
            leaves_since: None,
            progress,
            task: watch::Sender::new(run.progress.task.clone()),
            meter,
            problems: None,
            title: None,
            poll: None,
            waits_for: None,
        }
    }

    /// Where its state is written: among the syncs, or among the tasks.
    fn runs(&self) -> &'a Runs {
        let control = &self.context.control;
        if self.is_task() { control.tasks() } else { control.runs() }
    }

    fn is_task(&self) -> bool {
        self.kind.is_some()
    }

    /// Executes the run until it is left.
    ///
    /// # Errors
    /// When its status can never be recorded: the run stays as it is, for its next owner.
    pub(crate) async fn tend(mut self, run: &Run) -> Result<RunExit, ControlError> {
        if run.wanted == DesiredState::Cancel
            && let Err(error) = self.cancel().await
        {
            return self.not_given_up(&error).await;
        }
        let started = match self.runs().start(self.lease, self.id, self.context.clock.now()).await {
            // The view of all runs lags a little: this run has ended since. The next check finds its status.
            Err(ControlError::Refused(refused)) => {
                tracing::debug!(run.id = %self.id, %refused, "the run is no work any more");
                return Ok(RunExit::Later);
            }
            started => started?,
        };
        if !matches!(started.state, RunState::Running { .. }) {
            return Ok(RunExit::Settled);
        }
        let options = match run_options::options(&self.source, &run.spec) {
            Ok(mut options) => {
                options.channels = channels::open(self.context, &self.source.id);
                with_neighbours(self.context, &self.source, options)
            }
            Err(error) => return self.fail(error.to_string()).await,
        };
        let client = match client(self.context, &options) {
            Ok(client) => client,
            Err(error) => return self.fail(format!("it cannot be asked as it is to be: {error}")).await,
        };
        if let Some(task) = self.kind.clone() {
            tracing::info!(run.id = %self.id, "the task begins");
            let _in_hand = self.context.metrics.begin();
            return Box::pin(self.execute_task(&task, client, &options)).await;
        }
        tracing::info!(run.id = %self.id, "the run begins");
        let _in_hand = self.context.metrics.begin();
        let done_before = done(&run.progress.counters);
        let mut attempt = 0;
        let mut done_at_stop = done_before;
        loop {
            let stop = CancellationToken::new();
            let harvesting = Box::pin(self.harvest(client.clone(), options.clone(), stop.clone()));
            let ended = match self.attend(harvesting, &stop).await? {
                Attended::Ended(ended) => ended,
                Attended::RunExit(left) => return Ok(left),
            };
            let error = match ended {
                Ok(report) => {
                    let left = self.finish(&report).await;
                    self.tell_of_channels(&client, &report, was_poll(run)).await;
                    return left;
                }
                Err(error) => error,
            };
            let now = self.context.clock.now();
            let done = done(&self.progress.borrow().counters);
            attempt = if done > done_at_stop { 1 } else { attempt + 1 };
            done_at_stop = done_at_stop.max(done);
            let waited = self.waited.as_ref().filter(|_| done <= done_before);
            match run_retry::next(&error, attempt, waited, now) {
                RunRetry::Lost => {
                    tracing::warn!(run.id = %self.id, %error, "another scheduler holds the lease: stop");
                    return Ok(RunExit::Lost);
                }
                RunRetry::Stopped if self.leaves_since.is_some() && !self.keep.is_cancelled() => {
                    return self.park(RunWait::turn(self.waited.as_ref(), now)).await;
                }
                RunRetry::Stopped => return self.stopped().await,
                RunRetry::Fail => return self.fail(error.to_string()).await,
                RunRetry::Park(wait) => return self.park(wait).await,
                RunRetry::Again(wait) => {
                    tracing::warn!(run.id = %self.id, %error, again_in_ms = wait.as_millis(), "the run waits");
                    self.waits_for = Some(error.to_string());
                    let waiting = async {
                        tokio::time::sleep(wait).await;
                        Ok::<_, HarvestError>(())
                    };
                    match self.attend(waiting, &CancellationToken::new()).await? {
                        Attended::Ended(_) => {}
                        Attended::RunExit(left) => return Ok(left),
                    }
                    self.waits_for = None;
                }
            }
        }
    }
}

/// What a run has done: any of it is progress.
fn done(counters: &Counters) -> u64 {
    counters.listed + counters.stored + counters.unchanged + counters.deleted
}
