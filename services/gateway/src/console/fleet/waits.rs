//! What runs wait for.

use control::{Run, RunFailure, RunState, RunStatus, WaitReason};
use jiff::Timestamp;
use model::{RunId, SourceId};

/// What a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// A place at a scheduler.
    Place,
    /// A Source that does not answer.
    Answer,
    /// The end of a pause that the Source asked for.
    RetryAfter,
    /// Its turn, after other runs.
    Turn,
    /// What its owner reports, while it keeps its place: for example a store that is full.
    Reported,
    /// A new owner, because the last one is gone.
    Owner,
    /// An operator's approval of its deletions.
    Approval,
    /// An operator who resumes it.
    Resume,
}

/// The runs that wait for one thing.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// How many.
    pub(super) count: u64,
    /// The one that has waited the longest, and since when.
    pub(super) longest: Option<(Timestamp, RunLink)>,
    /// The one that is tried next, and when.
    pub(super) next: Option<(Timestamp, RunLink)>,
}

/// A run, to link to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunLink {
    pub(super) source: SourceId,
    pub(super) run: RunId,
}

impl WaitsFor {
    /// All, in the order of the page.
    pub(super) const ALL: [Self; 8] = [
        Self::Place,
        Self::Answer,
        Self::RetryAfter,
        Self::Turn,
        Self::Reported,
        Self::Owner,
        Self::Approval,
        Self::Resume,
    ];

    /// What a run in this state waits for.
    pub(super) fn of(run: &Run, status: &RunStatus<'_>) -> Option<Self> {
        match status {
            RunStatus::Queued => Some(Self::Place),
            RunStatus::Waiting(wait) => Some(match wait.reason {
                WaitReason::Unreachable => Self::Answer,
                WaitReason::RetryAfter => Self::RetryAfter,
                WaitReason::Turn => Self::Turn,
            }),
            RunStatus::Running { .. } => run.progress.waits_for.is_some().then_some(Self::Reported),
            RunStatus::Interrupted { .. } => Some(Self::Owner),
            RunStatus::Paused => Some(Self::Resume),
            RunStatus::Failed { .. } => {
                matches!(run.state, RunState::Failed(RunFailure { by_guard: true, .. }))
                    .then_some(Self::Approval)
            }
            RunStatus::Finished { .. } | RunStatus::Cancelled => None,
        }
    }

    /// The words on the page.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Place => "a free slot at a scheduler",
            Self::Answer => "a Source that does not answer",
            Self::RetryAfter => "the end of a pause that the Source asked for",
            Self::Turn => "its turn, after other runs",
            Self::Reported => "see the run: its scheduler reports why; it keeps its slot",
            Self::Owner => "another scheduler, because its own is gone",
            Self::Approval => "an operator, to approve deletions",
            Self::Resume => "an operator, to resume it",
        }
    }

    /// The query of the list of these runs.
    pub(super) fn query(self) -> &'static str {
        match self {
            Self::Place => "state=queued",
            Self::Answer => "state=waiting&reason=unreachable",
            Self::RetryAfter => "state=waiting&reason=retry-after",
            Self::Turn => "state=waiting&reason=turn",
            Self::Reported => "state=running",
            Self::Owner => "state=interrupted",
            Self::Approval => "state=failed",
            Self::Resume => "state=paused",
        }
    }

    /// Since when the run has waited; none if its record does not say.
    fn since(self, run: &Run) -> Option<Timestamp> {
        match self {
            Self::Place => Some(run.spec.asked_at),
            Self::Answer | Self::RetryAfter | Self::Turn => run.waiting.as_ref().map(|wait| wait.since),
            Self::Owner => run.progress.told_at,
            Self::Approval => run.finished_at,
            Self::Reported | Self::Resume => None,
        }
    }

    /// When the run is tried again. None where no time is set, as for a run that waits for a place.
    fn until(self, run: &Run) -> Option<Timestamp> {
        match self {
            Self::Answer | Self::RetryAfter => run.waiting.as_ref().map(|wait| wait.until),
            _ => None,
        }
    }
}

impl Waits {
    /// Adds a run that waits for this.
    pub(super) fn add(&mut self, waits_for: WaitsFor, run: &Run) {
        self.count += 1;
        keep_first(&mut self.longest, waits_for.since(run), run);
        keep_first(&mut self.next, waits_for.until(run), run);
    }
}

fn keep_first(first: &mut Option<(Timestamp, RunLink)>, at: Option<Timestamp>, run: &Run) {
    if let Some(at) = at
        && first.as_ref().is_none_or(|(before, _)| at < *before)
    {
        *first = Some((at, RunLink::of(run)));
    }
}

impl RunLink {
    pub(super) fn of(run: &Run) -> Self {
        Self { source: run.spec.source.clone(), run: run.spec.id }
    }
}
