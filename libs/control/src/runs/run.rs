//! A run: what is wanted of it, and what is so.

use jiff::Timestamp;
use model::{Counters, Message, Phase, RunId, SourceId};
use serde::{Deserialize, Serialize};

use crate::Revision;
use crate::members::MemberId;
use crate::sources::RunMode;
use crate::table::Kept;

/// What is asked for with a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Its name.
    pub id: RunId,
    /// The Source.
    pub source: SourceId,
    /// How it is brought in step.
    pub mode: RunMode,
    /// Who asked.
    pub asked_by: AskedBy,
    /// When.
    pub asked_at: Timestamp,
    /// Whether the operator allows more deletions for absence than the Source's guard does, in this run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_deletes: bool,
    /// Whether an audit puts right what differs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
}

/// Who asked for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedBy {
    /// A person.
    Operator,
    /// The Source's schedule.
    Schedule,
    /// A hub, by a notification that it has delivered (CN-4): what that tells is planned, and lists are read only where it does not do.
    Notification,
    /// Somebody who has [hinted](crate::Hint) that the Source has changed: its lists are looked at.
    Hint,
}

/// A run of a Source, wanted and real. Of each Source there is one at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// What was asked for.
    pub spec: RunSpec,
    /// What is wanted of it now.
    pub wanted: Wanted,
    /// What is so. Readers ask for its [`standing`](Self::standing).
    pub state: RunState,
    /// How far it has come.
    #[serde(default)]
    pub progress: Progress,
    /// What the runs before it have left: it is handed on from run to run.
    #[serde(default, skip_serializing_if = "Before::is_empty")]
    pub before: Before,
    /// When somebody first worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// What is wanted of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// That it goes on to its end.
    Run,
    /// That it waits.
    Pause,
    /// That it ends.
    Cancel,
}

/// What a run is, as it was written last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum RunState {
    /// Nobody works on it yet, or no more.
    Queued,
    /// Somebody worked on it when this was written.
    Running {
        /// Who, and in which tenure.
        #[serde(flatten)]
        owner: Tenure,
    },
    /// It waits for somebody to resume it.
    Paused,
    /// It went to its end.
    Finished {
        /// Whether all that the Source offers is held; if not, there are problems.
        in_sync: bool,
    },
    /// It could not go on.
    Failed(Stopped),
    /// Somebody ended it.
    Cancelled,
}

/// Why a run could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// What happened, where, and what to do.
    pub why: String,
    /// The guard stopped it: it would have deleted more than the operator allows without a word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_guard: bool,
}

impl Stopped {
    /// Something else than the guard.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), by_guard: false }
    }

    /// The guard, and what it says.
    pub fn by_guard(why: impl Into<String>) -> Self {
        Self { why: why.into(), by_guard: true }
    }
}

/// One ownership of a Source: from acquiring its lease until losing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenure {
    /// Who.
    pub owner: MemberId,
    /// Larger than that of every tenure before it.
    pub epoch: Revision,
}

/// How far a run has come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What it counted.
    pub counters: Counters,
    /// Pending records left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
    /// What it waits for, while it does not go on: a Source that is silent, a store that is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// When this was told: the owner's last sign of life here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
    /// Problems of the Source, once the run has counted them: at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Problems>,
}

/// How many problems a Source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Problems {
    /// Those that are open.
    pub open: u64,
    /// Those beside them that the operator ignores.
    #[serde(default)]
    pub ignored: u64,
}

/// What the runs of a Source have left behind, as far as nobody knows better by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Before {
    /// When the last of them began that ended with all in step: what the Source had offered until then is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_sync_as_of: Option<Timestamp>,
    /// The problems when they were counted last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Problems>,
}

/// What a run is to its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing<'a> {
    /// It waits for somebody to work on it.
    Queued,
    /// Somebody works on it.
    Running {
        /// Who.
        owner: &'a MemberId,
        /// Whether it is about to stop: somebody wants it paused or cancelled.
        stopping: bool,
    },
    /// Its owner is gone without a word; the next one goes on with it.
    Interrupted {
        /// Who it was.
        owner: &'a MemberId,
    },
    /// It waits for somebody to resume it.
    Paused,
    /// It went to its end.
    Finished {
        /// Whether all that the Source offers is held.
        in_sync: bool,
    },
    /// It could not go on.
    Failed {
        /// Why.
        why: &'a str,
    },
    /// Somebody ended it.
    Cancelled,
}

impl Run {
    /// What the run is, by the present ownership of its Source (that of its lease): a run whose owner is not that is
    /// interrupted, whatever was written last.
    pub fn standing(&self, present: Option<&Tenure>) -> Standing<'_> {
        match &self.state {
            RunState::Queued => Standing::Queued,
            RunState::Running { owner } if present == Some(owner) => {
                Standing::Running { owner: &owner.owner, stopping: self.wanted != Wanted::Run }
            }
            RunState::Running { owner } => Standing::Interrupted { owner: &owner.owner },
            RunState::Paused => Standing::Paused,
            RunState::Finished { in_sync } => Standing::Finished { in_sync: *in_sync },
            RunState::Failed(Stopped { why, .. }) => Standing::Failed { why },
            RunState::Cancelled => Standing::Cancelled,
        }
    }

    /// What it leaves, with the runs before it: nothing of its Source has to be opened to say how that stands.
    pub fn leaves(&self) -> Before {
        let is_in_sync = matches!(self.state, RunState::Finished { in_sync: true });
        let began = self.started_at.unwrap_or(self.spec.asked_at);
        Before {
            in_sync_as_of: if is_in_sync { Some(began) } else { self.before.in_sync_as_of },
            problems: self.progress.problems.or(self.before.problems),
        }
    }

    /// Whether somebody has to work on it: it is queued, or it was running, and perhaps nobody does any more.
    pub fn wants_work(&self) -> bool {
        matches!(self.state, RunState::Queued | RunState::Running { .. })
    }
}

impl Before {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RunState {
    /// Whether nothing follows.
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

impl Standing<'_> {
    /// Its name, as it is shown.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
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
    const VERSION: u16 = 1;
}

impl Kept for Run {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }
}
