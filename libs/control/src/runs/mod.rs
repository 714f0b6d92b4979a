//! What is wanted and what is so: the runs.

mod run;
mod step;

use jiff::Timestamp;
use model::{RunId, SourceId};

use crate::bucket::WriteError;
use crate::lease::Lease;
use crate::table::{Next, TRIES, Table};
use crate::view::View;
use crate::{ControlError, Revised, Revision};

pub use run::{
    AskedBy, Before, Problems, Progress, Run, RunSpec, RunState, Standing, Stopped, Tenure, Wanted,
};
pub use step::{InSync, Step, StepRefused, Why};

/// The runs of all Sources: of each the present or last one, and some before it.
#[derive(Debug, Clone)]
pub struct Runs {
    table: Table<Run>,
    past: Table<Run>,
}

impl Run {
    /// A run that nobody has begun.
    pub fn submitted(spec: RunSpec) -> Self {
        Self {
            spec,
            wanted: Wanted::Run,
            state: RunState::Queued,
            progress: Progress::default(),
            before: Before::default(),
            started_at: None,
            finished_at: None,
        }
    }
}

impl Runs {
    pub(crate) fn new(table: Table<Run>, past: Table<Run>) -> Self {
        Self { table, past }
    }

    /// Asks for a run.
    ///
    /// # Errors
    /// [`ControlError::Exists`] when the last run of the Source is not over.
    pub async fn submit(&self, spec: RunSpec) -> Result<Revised<Run>, ControlError> {
        let source = spec.source.clone();
        let mut run = Run::submitted(spec);
        for _ in 0..TRIES {
            let (last, revision) = self.table.slot(&source).await?;
            if let Some(last) = last {
                if last.spec.id == run.spec.id {
                    // This very call, which was not sure whether it had been heard.
                    return Ok(last);
                }
                if !last.state.is_over() {
                    let what = format!("run {} of {source} that is {}", last.spec.id, last.state.name());
                    return Err(ControlError::Exists { what });
                }
                // Before it is overwritten. What is over does not change any more, so to do it twice does no harm.
                let kept = self.past.put(&source, &last, None, None).await;
                kept.map_err(|error| error.of(|| format!("the past run of {source}")))?;
                run.before = last.leaves();
            }
            match self.table.put(&source, &run, Some(revision), None).await {
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.of(|| format!("run of {source}"))),
                Ok(revision) => return Ok(Revised { value: run.into(), revision }),
            }
        }
        Err(ControlError::Conflict { what: format!("run of {source}") })
    }

    /// Wants a run to wait.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn pause(
        &self,
        source: &SourceId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        self.step(source, run, Step::Pause, now).await
    }

    /// Wants a run to go on.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn resume(
        &self,
        source: &SourceId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        self.step(source, run, Step::Resume, now).await
    }

    /// Wants a run to end. One that nobody works on is over at once; otherwise its owner ends it, or the next owner of
    /// the Source if that one is gone.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn cancel(
        &self,
        source: &SourceId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        self.step(source, run, Step::Cancel, now).await
    }

    /// Begins to work on the Source's run, or takes it over, as the holder of its lease. Look at the state that comes
    /// back: where the operator wanted something else meanwhile, it is not running.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn start(
        &self,
        lease: &Lease,
        run: RunId,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        self.step(lease.source(), run, Step::Start(lease.tenure()), now).await
    }

    /// Tells how far a run has come. What comes back says also what is wanted of it.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Refused`] also when another owner took it over.
    pub async fn tell(
        &self,
        lease: &Lease,
        run: RunId,
        progress: Progress,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        let progress = Progress { told_at: Some(now), ..progress };
        self.step(lease.source(), run, Step::Tell(lease.tenure(), progress.into()), now).await
    }

    /// Lets go of a run: it becomes what is wanted of it, queued, paused or cancelled.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn let_go(
        &self,
        lease: &Lease,
        run: RunId,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        self.step(lease.source(), run, Step::LetGo(lease.tenure()), now).await
    }

    /// Ends a run that came to its end.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn finish(
        &self,
        lease: &Lease,
        run: RunId,
        in_sync: InSync,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        self.step(lease.source(), run, Step::Finish(lease.tenure(), in_sync), now).await
    }

    /// Ends a run that cannot go on.
    ///
    /// # Errors
    /// [`ControlError::Absent`], [`ControlError::Refused`].
    pub async fn fail(
        &self,
        lease: &Lease,
        run: RunId,
        why: Stopped,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        self.step(lease.source(), run, Step::Fail(lease.tenure(), why), now).await
    }

    /// The present or last run of a Source.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, source: &SourceId) -> Result<Option<Revised<Run>>, ControlError> {
        self.table.get(source).await
    }

    /// The runs of a Source that are over and were followed by others, newest first, as many as are kept.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn past(&self, source: &SourceId) -> Result<Vec<Run>, ControlError> {
        let mut past = self.past.history(source).await?;
        past.reverse();
        // Two who submitted at the same time have both kept it.
        past.dedup_by_key(|run| run.spec.id);
        Ok(past)
    }

    /// A live copy of the present or last runs of all Sources.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<Run>, ControlError> {
        self.table.view().await
    }

    /// Forgets all runs of a Source, for one that was deleted.
    ///
    /// # Errors
    /// [`ControlError::Exists`] when its run is not over; [`ControlError::Conflict`] when one was submitted meanwhile.
    pub async fn forget(&self, source: &SourceId) -> Result<(), ControlError> {
        let (last, revision) = self.table.slot(source).await?;
        if let Some(last) = last {
            if !last.state.is_over() {
                let what = format!("run {} of {source} that is {}", last.spec.id, last.state.name());
                return Err(ControlError::Exists { what });
            }
            let removed = self.table.remove(source, Some(revision)).await;
            removed.map_err(|error| error.of(|| format!("run of {source}")))?;
        }
        self.past.remove(source, None).await.map_err(|error| error.of(|| format!("past runs of {source}")))
    }

    /// Takes a step, again if others write at the same time.
    async fn step(
        &self,
        source: &SourceId,
        run: RunId,
        step: Step,
        now: Timestamp,
    ) -> Result<Revised<Run>, ControlError> {
        let what = || format!("run {run} of {source}");
        let absent = || ControlError::Absent { what: what() };
        let stepped = |found: Option<&Run>| {
            let found = found.filter(|found| found.spec.id == run).ok_or_else(absent)?;
            Ok(Next::Becomes(found.step(step.clone(), now)?))
        };
        self.table.change(source, what, stepped).await?.ok_or_else(absent)
    }
}

impl Tenure {
    pub(crate) fn new(owner: crate::members::MemberId, epoch: Revision) -> Self {
        Self { owner, epoch }
    }
}
