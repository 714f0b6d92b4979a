//! A run: its request, its desired state and its observed state.

use jiff::Timestamp;
use model::{Counters, Message, Persisted, Phase, PollBasis, RunId, RunMode, SourceId};
use serde::{Deserialize, Serialize};

use crate::kept::Kept;
use crate::lease::LeaseTerm;
use crate::members::MemberId;
use crate::runs::task::{Task, TaskProgress};
use crate::runs::wait::RunWait;
use crate::sources::{Spec, SpecDigest};

/// A request for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The run ID.
    pub id: RunId,
    /// The Source.
    pub source: SourceId,
    /// Its mode.
    pub mode: RunMode,
    /// The origin of the request.
    pub asked_by: AskedBy,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// Whether the operator allows this run to delete more absent resources than the deletion guard does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_deletes: bool,
    /// Whether an audit repairs what differs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
    /// What it does, if it is a task and no sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
}

/// The origin of a request for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedBy {
    /// An operator.
    Operator,
    /// The Source's schedule.
    Schedule,
    /// A Change Notification that a hub delivered (CN-4). The run plans its changes, and reads lists only where that is
    /// not enough.
    Notification,
    /// A [hint](crate::Hint) that the Source has changed: the run reads its lists.
    Hint,
}

/// A run of a Source, with its desired and its observed state. Each Source has at most one sync and one task at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The request.
    pub spec: RunSpec,
    /// The desired state.
    pub wanted: DesiredState,
    /// The observed state. Readers use [`status`](Self::status) instead.
    pub state: RunState,
    /// Why it waits, if it is queued and not due yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<RunWait>,
    /// Its progress.
    #[serde(default)]
    pub progress: Progress,
    /// Results carried over from earlier runs.
    #[serde(default, skip_serializing_if = "SyncSummary::is_empty")]
    pub before: SyncSummary,
    /// When a scheduler first started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// The desired state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DesiredState {
    /// To go on to its end.
    Run,
    /// To wait.
    Pause,
    /// To end.
    Cancel,
}

/// The observed state of a run, as it was last written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum RunState {
    /// No scheduler has started it, or its owner has released it.
    Queued,
    /// A scheduler worked on it when this was written.
    Running {
        /// The owner and its term.
        #[serde(flatten)]
        owner: LeaseTerm,
    },
    /// It waits until an operator resumes it.
    Paused,
    /// It went to its end.
    Finished {
        /// Whether all that the Source lists is stored; if not, there are problems. Of a task: whether nothing failed.
        in_sync: bool,
    },
    /// It could not go on.
    Failed(RunFailure),
    /// An operator cancelled it.
    Cancelled,
}

/// Why a run could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// What happened, where, and what to do.
    pub why: String,
    /// Whether the deletion guard stopped it: it would have deleted more than is allowed without an approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_guard: bool,
}

impl RunFailure {
    /// A failure that did not come from the deletion guard.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), by_guard: false }
    }

    /// A stop by the deletion guard, with its message.
    pub fn by_guard(why: impl Into<String>) -> Self {
        Self { why: why.into(), by_guard: true }
    }
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Its phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Its counters.
    pub counters: Counters,
    /// Pending records left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
    /// What blocks it: for example a Source that does not respond, or a store that is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// When this was reported: the owner's last heartbeat of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
    /// Problems of the Source. The run counts them at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Problems>,
    /// The title that discovery proposes for the Source. The run learns of it at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What a poll compares instead of the next run, once the run has finished and everything is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<PollState>,
    /// How far its task is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskProgress>,
}

/// What a poll of an idle Source compares, and when the last one found it unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollState {
    /// The documents, and until when their comparison proves anything.
    #[serde(flatten)]
    pub basis: PollBasis,
    /// What of the Source's spec the run has followed.
    pub spec: SpecDigest,
    /// When the last poll began that found all of them unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled_at: Option<Timestamp>,
}

/// The number of problems of a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Problems {
    /// Open problems.
    pub open: u64,
    /// Ignored problems, in addition to the open ones.
    #[serde(default)]
    pub ignored: u64,
}

/// Sync time, problem counts and the proposed title, carried over from earlier runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncSummary {
    /// When the last run began that ended in sync. What the Source offered until then is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_sync_as_of: Option<Timestamp>,
    /// The problems at the last count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Problems>,
    /// The title that discovery has proposed for the Source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The state of a run for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus<'a> {
    /// It waits for a scheduler.
    Queued,
    /// It waits for its Source, or for its next turn, until a known time.
    Waiting(&'a RunWait),
    /// A scheduler works on it.
    Running {
        /// The owner.
        owner: &'a MemberId,
        /// Whether it is about to stop, because the operator requested to pause or cancel it.
        stopping: bool,
    },
    /// Its owner is gone without releasing it; the next owner resumes it.
    Interrupted {
        /// The last owner.
        owner: &'a MemberId,
    },
    /// It waits until an operator resumes it.
    Paused,
    /// It went to its end.
    Finished {
        /// Whether all that the Source lists is stored.
        in_sync: bool,
    },
    /// It could not go on.
    Failed {
        /// Why.
        why: &'a str,
    },
    /// An operator cancelled it.
    Cancelled,
}

impl Run {
    /// The state of the run, given the current lease of its Source. A run whose owner does not hold the lease is
    /// interrupted, whatever was last written.
    pub fn status(&self, present: Option<&LeaseTerm>) -> RunStatus<'_> {
        match &self.state {
            RunState::Queued => self.waiting.as_ref().map_or(RunStatus::Queued, RunStatus::Waiting),
            RunState::Running { owner } if present == Some(owner) => {
                RunStatus::Running { owner: &owner.owner, stopping: self.wanted != DesiredState::Run }
            }
            RunState::Running { owner } => RunStatus::Interrupted { owner: &owner.owner },
            RunState::Paused => RunStatus::Paused,
            RunState::Finished { in_sync } => RunStatus::Finished { in_sync: *in_sync },
            RunState::Failed(RunFailure { why, .. }) => RunStatus::Failed { why },
            RunState::Cancelled => RunStatus::Cancelled,
        }
    }

    /// The results that the next run carries over. With them, the condition of a Source is known without opening its
    /// catalog.
    pub fn leaves(&self) -> SyncSummary {
        if self.spec.task.is_some() {
            // A task says nothing of how far the Source is in sync.
            return self.before.clone();
        }
        let is_in_sync = matches!(self.state, RunState::Finished { in_sync: true });
        let began = self.started_at.unwrap_or(self.spec.asked_at);
        let began = self.polled_at().map_or(began, |polled| polled.max(began));
        SyncSummary {
            in_sync_as_of: if is_in_sync { Some(began) } else { self.before.in_sync_as_of },
            problems: self.progress.problems.or(self.before.problems),
            title: self.proposed_title().map(str::to_owned),
        }
    }

    /// Whether it is a task, and no sync.
    pub fn is_task(&self) -> bool {
        self.spec.task.is_some()
    }

    /// Whether it moves its Source to another entry URL, or back. No sync comes before that.
    pub fn is_move(&self) -> bool {
        matches!(self.spec.task, Some(Task::Move { .. } | Task::MoveBack { .. }))
    }

    /// The title that discovery proposes for the Source.
    pub fn proposed_title(&self) -> Option<&str> {
        self.progress.title.as_deref().or(self.before.title.as_deref())
    }

    /// What a poll compares in place of the next run of a Source with this spec, if it proves anything now.
    pub fn poll_basis(&self, spec: &Spec, now: Timestamp) -> Option<&PollBasis> {
        let poll = self.progress.poll.as_ref()?;
        let is_in_sync = matches!(self.state, RunState::Finished { in_sync: true });
        let is_valid = is_in_sync && now < poll.basis.valid_until && poll.spec == spec.run_digest();
        is_valid.then_some(&poll.basis)
    }

    /// When the last poll after this run began that found nothing new.
    pub fn polled_at(&self) -> Option<Timestamp> {
        self.progress.poll.as_ref()?.polled_at
    }

    /// Whether a scheduler must work on it: it is queued, or it was running and may be without an owner now.
    pub fn wants_work(&self) -> bool {
        matches!(self.state, RunState::Queued | RunState::Running { .. })
    }
}

impl SyncSummary {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RunState {
    /// Whether its state is final.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Failed { .. } | Self::Cancelled)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running { .. } => "running",
            Self::Paused => "paused",
            Self::Finished { .. } => "finished",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl RunStatus<'_> {
    /// Its name, as it is shown.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting(_) => "waiting",
            Self::Running { .. } => "running",
            Self::Interrupted { .. } => "interrupted",
            Self::Paused => "paused",
            Self::Finished { .. } => "finished",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Message for Run {
    const KIND: &'static str = "run";
    const VERSION: u16 = Persisted::Runs.version();
}

impl Kept for Run {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }

    fn describe(source: &SourceId) -> String {
        format!("run of {source}")
    }
}
