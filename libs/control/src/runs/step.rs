//! The state machine of a run.
//!
//! | | queued | running | paused | over |
//! |---|---|---|---|---|
//! | pause | paused | *pause is wanted* | – | refused |
//! | resume | – | *going on is wanted* | queued | refused |
//! | cancel | cancelled | *cancelling is wanted* | cancelled | refused |
//! | start | running | taken over, or what is wanted | refused | refused |
//! | progress | refused | running | refused | refused |
//! | release, wait | refused | queued, or what is wanted | refused | refused |
//! | polled | refused | refused | refused | finished in sync: itself |
//! | postpone | queued | refused | refused | refused |
//! | finish, fail | refused | finished, failed | refused | refused |
//!
//! The operator takes the first three steps, without waiting for an owner. The owner takes the others and names its
//! term: if another owner took the run over meanwhile, the step is refused. A cancelling cannot be undone. A step to
//! the final state that a run already has is not refused. The response to the first attempt may have been lost. A later
//! term may fail a run without having started it: an owner that cannot carry out a cancelling must be able to report
//! that.

use jiff::Timestamp;
use model::{RunId, SourceId};

use super::run::{DesiredState, Progress, Run, RunFailure, RunState};
use super::wait::RunWait;
use crate::error::ControlError;
use crate::lease::LeaseTerm;

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTransition {
    /// The operator wants it to wait.
    Pause,
    /// The operator wants it to go on.
    Resume,
    /// The operator wants it to end.
    Cancel,
    /// An owner starts it, or takes it over. If the operator requested something else meanwhile, the run enters that
    /// state.
    Start(LeaseTerm),
    /// The owner reports its progress.
    Progress(LeaseTerm, Box<Progress>),
    /// The owner releases it. The run enters the desired state.
    Release(LeaseTerm),
    /// The owner releases it until a known time. If the operator requested something else, the run enters that state.
    Wait(LeaseTerm, RunWait),
    /// The Source of a queued run was asked, and does not answer yet. No owner is needed.
    Postpone(RunWait),
    /// A poll found nothing new after it.
    Polled,
    /// The owner has finished it.
    Finish(LeaseTerm, InSync),
    /// The owner cannot go on.
    Fail(LeaseTerm, RunFailure),
}

/// Whether all that a Source offers is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InSync(pub bool);

/// Why a step was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run {run} of {source_id} cannot {step}: {why}")]
pub struct InvalidTransition {
    run: RunId,
    source_id: SourceId,
    step: &'static str,
    why: Why,
}

/// What prevents a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The state of the run.
    #[error("it is {0}")]
    State(&'static str),
    /// The operator has cancelled it.
    #[error("it is being cancelled")]
    Cancelling,
    /// The run has another owner, or a later term of the same one.
    #[error("{owner} has a newer lease; this process must stop", owner = .0.owner)]
    NotYours(LeaseTerm),
}

impl From<InvalidTransition> for ControlError {
    fn from(error: InvalidTransition) -> Self {
        Self::Refused(error.to_string())
    }
}

impl RunTransition {
    fn name(&self) -> &'static str {
        match self {
            Self::Pause => "be paused",
            Self::Resume => "be resumed",
            Self::Cancel => "be cancelled",
            Self::Start(_) => "be started",
            Self::Progress(..) => "record progress",
            Self::Release(_) => "be released",
            Self::Wait(..) => "wait",
            Self::Postpone(_) => "be postponed",
            Self::Polled => "be polled for",
            Self::Finish(..) => "finish",
            Self::Fail(..) => "fail",
        }
    }
}

impl Run {
    /// The run after a step. An unchanged run means that there is nothing to do.
    ///
    /// # Errors
    /// [`InvalidTransition`] where its state or its owner prevents the step.
    pub fn step(&self, step: RunTransition, now: Timestamp) -> Result<Run, InvalidTransition> {
        let name = step.name();
        self.next(step, now).map_err(|why| InvalidTransition {
            run: self.spec.id,
            source_id: self.spec.source.clone(),
            step: name,
            why,
        })
    }

    fn next(&self, step: RunTransition, now: Timestamp) -> Result<Run, Why> {
        let state = Why::State(self.state.name());
        match (&self.state, step) {
            (RunState::Queued | RunState::Paused, RunTransition::Pause) => {
                Ok(self.becoming(DesiredState::Pause, now))
            }
            (RunState::Queued | RunState::Paused, RunTransition::Resume) => {
                Ok(self.becoming(DesiredState::Run, now))
            }
            (RunState::Queued | RunState::Paused, RunTransition::Cancel) => {
                Ok(self.becoming(DesiredState::Cancel, now))
            }
            (RunState::Running { .. }, RunTransition::Pause | RunTransition::Resume)
                if self.wanted == DesiredState::Cancel =>
            {
                Err(Why::Cancelling)
            }
            (RunState::Running { .. }, RunTransition::Pause) => {
                Ok(Run { wanted: DesiredState::Pause, ..self.clone() })
            }
            (RunState::Running { .. }, RunTransition::Resume) => {
                Ok(Run { wanted: DesiredState::Run, ..self.clone() })
            }
            (RunState::Running { .. }, RunTransition::Cancel) => {
                Ok(Run { wanted: DesiredState::Cancel, ..self.clone() })
            }
            (RunState::Queued, RunTransition::Start(term)) => Ok(self.started(term, now)),
            (RunState::Running { owner }, RunTransition::Start(term)) if term.epoch > owner.epoch => {
                match self.wanted {
                    DesiredState::Run => Ok(self.started(term, now)),
                    wanted => Ok(self.becoming(wanted, now)),
                }
            }
            (RunState::Running { owner }, RunTransition::Start(term)) if term == *owner => Ok(self.clone()),
            (RunState::Running { owner }, RunTransition::Fail(term, why)) if term.epoch > owner.epoch => {
                Ok(self.over(RunState::Failed(why), now))
            }
            (
                RunState::Running { owner },
                RunTransition::Start(term)
                | RunTransition::Progress(term, _)
                | RunTransition::Release(term)
                | RunTransition::Wait(term, _)
                | RunTransition::Finish(term, _)
                | RunTransition::Fail(term, _),
            ) if term != *owner => Err(Why::NotYours(owner.clone())),
            (RunState::Running { .. }, RunTransition::Progress(_, progress)) => {
                Ok(Run { progress: *progress, ..self.clone() })
            }
            (RunState::Running { .. }, RunTransition::Release(_)) => Ok(self.becoming(self.wanted, now)),
            (RunState::Running { .. }, RunTransition::Wait(_, wait)) => match self.wanted {
                DesiredState::Run => Ok(Run { waiting: Some(wait), ..self.becoming(DesiredState::Run, now) }),
                wanted => Ok(self.becoming(wanted, now)),
            },
            (RunState::Queued, RunTransition::Postpone(wait)) => {
                Ok(Run { waiting: Some(wait), ..self.clone() })
            }
            (RunState::Running { .. }, RunTransition::Finish(_, InSync(in_sync))) => {
                Ok(self.over(RunState::Finished { in_sync }, now))
            }
            (RunState::Running { .. }, RunTransition::Fail(_, why)) => {
                Ok(self.over(RunState::Failed(why), now))
            }
            (RunState::Finished { in_sync: true }, RunTransition::Polled) => {
                let mut run = self.clone();
                run.progress.poll.as_mut().ok_or(state)?.polled_at = Some(now);
                Ok(run)
            }
            (RunState::Cancelled, RunTransition::Cancel) => Ok(self.clone()),
            (RunState::Finished { in_sync }, RunTransition::Finish(_, InSync(now))) if *in_sync == now => {
                Ok(self.clone())
            }
            (RunState::Failed(why), RunTransition::Fail(_, now)) if *why == now => Ok(self.clone()),
            _ => Err(state),
        }
    }

    /// The run without an owner, in this desired state. What it waited for does not hold any more: an operator who
    /// resumes a waiting run wants the next try now.
    fn becoming(&self, wanted: DesiredState, now: Timestamp) -> Run {
        let idle = |state| Run { wanted, state, waiting: None, ..self.clone() };
        match wanted {
            DesiredState::Run => idle(RunState::Queued),
            DesiredState::Pause => idle(RunState::Paused),
            DesiredState::Cancel => Run { wanted, ..self.over(RunState::Cancelled, now) },
        }
    }

    fn started(&self, owner: LeaseTerm, now: Timestamp) -> Run {
        let started_at = self.started_at.or(Some(now));
        Run { state: RunState::Running { owner }, waiting: None, started_at, ..self.clone() }
    }

    fn over(&self, state: RunState, now: Timestamp) -> Run {
        Run { state, waiting: None, finished_at: Some(now), ..self.clone() }
    }
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
