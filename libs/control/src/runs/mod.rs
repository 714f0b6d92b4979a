//! Runs: their desired and their observed state.

mod run;
mod step;
mod task;
mod wait;

use jiff::Timestamp;
use model::{RunId, SourceId};

use crate::error::ControlError;
use crate::kept::Kept as _;
use crate::lease::Lease;
use crate::table::{TRIES, Table, Update};
use crate::versioned::Versioned;
use crate::watch_cache::WatchCache;

pub use run::{
    AskedBy, DesiredState, PollState, Problems, Progress, Run, RunFailure, RunSpec, RunState, RunStatus,
    SyncSummary,
};
pub use step::{InSync, InvalidTransition, RunTransition, Why};
pub use task::{Backfill, Task, TaskProgress};
pub use wait::{RunWait, WaitReason};

/// The syncs, or the tasks, of all Sources: for each its current or last one, and some before it. The earlier ones of both
/// are stored together.
#[derive(Debug, Clone)]
pub struct Runs {
    table: Table<Run>,
    past: Table<Run>,
}

impl Run {
    /// A run that no scheduler has started.
    pub fn submitted(spec: RunSpec) -> Self {
        Self {
            spec,
            wanted: DesiredState::Run,
            state: RunState::Queued,
            waiting: None,
            progress: Progress::default(),
            before: SyncSummary::default(),
            started_at: None,
            finished_at: None,
        }
    }
}

impl Runs {
    pub(crate) fn new(table: Table<Run>, past: Table<Run>) -> Self {
        Self { table, past }
    }

    /// Requests a run.
    ///
    /// # Errors
    /// [`ControlError::Exists`] when the last run of the Source is not over.
    pub async fn submit(&self, spec: RunSpec) -> Result<Versioned<Run>, ControlError> {
        let source = spec.source.clone();
        let mut run = Run::submitted(spec);
        for _ in 0..TRIES {
            let (last, revision) = self.table.slot(&source).await?;
            if let Some(last) = last {
                if last.spec.id == run.spec.id {
                    // This very call wrote it, and only the response was lost.
                    return Ok(last);
                }
                must_be_over(&last)?;
                // Before it is overwritten. A run that is over does not change any more, so writing it twice is
                // harmless.
                self.past.write(&source, &last, None, None).await?;
                run.before = last.leaves();
            }
            match self.table.write(&source, &run, Some(revision), None).await {
                Err(ControlError::Conflict { .. }) => {}
                Err(error) => return Err(error),
                Ok(revision) => return Ok(Versioned { value: run.into(), revision }),
            }
        }
        Err(ControlError::Conflict { what: Run::describe(&source) })
    }

    /// Requests to pause a run.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn pause(
        &self,
        source: &SourceId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(source, run, RunTransition::Pause, now).await
    }

    /// Requests to resume a run.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn resume(
        &self,
        source: &SourceId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(source, run, RunTransition::Resume, now).await
    }

    /// Requests to cancel a run. A run without an owner ends at once. Otherwise its owner ends it, or the next owner of
    /// the Source if that owner is gone.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn cancel(
        &self,
        source: &SourceId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(source, run, RunTransition::Cancel, now).await
    }

    /// Starts the Source's run, or takes it over, as the holder of the lease. Check the returned state: if the operator
    /// requested something else meanwhile, it is not running.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn start(
        &self,
        lease: &Lease,
        run: RunId,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(lease.source(), run, RunTransition::Start(lease.term()), now).await
    }

    /// Reports the progress of a run. The result also shows what the operator requests.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Refused`] also when another owner took it over.
    pub async fn tell(
        &self,
        lease: &Lease,
        run: RunId,
        progress: Progress,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        let progress = Progress { told_at: Some(now), ..progress };
        self.step(lease.source(), run, RunTransition::Progress(lease.term(), progress.into()), now).await
    }

    /// Releases a run: it becomes queued, paused or cancelled, as the operator requests.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn let_go(
        &self,
        lease: &Lease,
        run: RunId,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(lease.source(), run, RunTransition::Release(lease.term()), now).await
    }

    /// Parks a run: it is queued again, and not due before `wait.until`. If the operator requests something else, it
    /// enters that state.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn park(
        &self,
        lease: &Lease,
        run: RunId,
        wait: RunWait,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(lease.source(), run, RunTransition::Wait(lease.term(), wait), now).await
    }

    /// Lets a queued run wait longer, without a lease: its Source was asked, and does not answer yet. Several processes
    /// may do so, and the last one counts.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Refused`] when the run is not queued any more.
    pub async fn postpone(
        &self,
        source: &SourceId,
        run: RunId,
        wait: RunWait,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(source, run, RunTransition::Postpone(wait), now).await
    }

    /// Records that a poll, which began at `began`, found nothing new after this run.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`] when a poll proves nothing any more.
    pub async fn polled(
        &self,
        source: &SourceId,
        run: RunId,
        began: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(source, run, RunTransition::Polled, began).await
    }

    /// Reports the final progress of a run and finishes it, in one write.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn finish(
        &self,
        lease: &Lease,
        run: RunId,
        progress: Progress,
        in_sync: InSync,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        let progress = Progress { told_at: Some(now), ..progress };
        let told = RunTransition::Progress(lease.term(), progress.into());
        self.steps(lease.source(), run, &[told, RunTransition::Finish(lease.term(), in_sync)], now).await
    }

    /// Fails a run that cannot go on.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn fail(
        &self,
        lease: &Lease,
        run: RunId,
        why: RunFailure,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.step(lease.source(), run, RunTransition::Fail(lease.term(), why), now).await
    }

    /// The current or last run of a Source.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, source: &SourceId) -> Result<Option<Versioned<Run>>, ControlError> {
        self.table.find(source).await
    }

    /// The earlier runs of a Source, syncs and tasks, newest first, as many as are stored. They are over, and newer runs
    /// followed.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn past(&self, source: &SourceId) -> Result<Vec<Run>, ControlError> {
        let mut past = self.past.history(source).await?;
        past.reverse();
        // Two concurrent submissions may both have stored it.
        past.dedup_by_key(|run| run.spec.id);
        Ok(past)
    }

    /// A view of the current or last runs of all Sources.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<WatchCache<Run>, ControlError> {
        self.table.view().await
    }

    /// Removes all runs of a deleted Source.
    ///
    /// # Errors
    /// [`ControlError::Exists`] when its run is not over; [`ControlError::Conflict`] when one was submitted meanwhile.
    pub async fn forget(&self, source: &SourceId) -> Result<(), ControlError> {
        let (last, revision) = self.table.slot(source).await?;
        if let Some(last) = last {
            must_be_over(&last)?;
            self.table.delete_at(source, Some(revision)).await?;
        }
        self.past.delete_at(source, None).await
    }

    async fn step(
        &self,
        source: &SourceId,
        run: RunId,
        step: RunTransition,
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        self.steps(source, run, &[step], now).await
    }

    /// Applies steps one after the other and writes the result, and retries if others write at the same time.
    async fn steps(
        &self,
        source: &SourceId,
        run: RunId,
        steps: &[RunTransition],
        now: Timestamp,
    ) -> Result<Versioned<Run>, ControlError> {
        let absent = || ControlError::Absent { what: format!("run {run} of {source}") };
        let stepped = |found: Option<&Run>| {
            let found = found.filter(|found| found.spec.id == run).ok_or_else(absent)?;
            let stepped = steps.iter().try_fold(found.clone(), |run, step| run.step(step.clone(), now))?;
            Ok(Update::Becomes(stepped))
        };
        self.table.change(source, stepped).await?.ok_or_else(absent)
    }
}

fn must_be_over(run: &Run) -> Result<(), ControlError> {
    if run.state.is_over() {
        return Ok(());
    }
    let what = format!("run {} of {} ({})", run.spec.id, run.spec.source, run.state.name());
    Err(ControlError::Exists { what })
}
