//! Runs: what the operator requests, and their progress.

use std::borrow::Cow;

use control::{AskedBy, Run as FleetRun, RunState, RunStatus, SourceName, WaitReason};
use jiff::Timestamp;
use model::{RunId, RunMode, SourceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::schema::{one_of, state};
use crate::{BackfillRun, Counters, MoveRun};

/// A request for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The mode of the run. `auto` decides from the state of the Source; an audit compares the catalog with the lists.
    #[serde(default)]
    #[schema(schema_with = mode)]
    pub mode: RunMode,
    /// Whether this run may delete more absent resources than the deletion guard of the Source allows.
    #[serde(default)]
    pub allow_deletes: bool,
    /// Whether an audit repairs what differs. Refused with another mode.
    #[serde(default)]
    pub repair: bool,
}

impl RunRequest {
    /// Whether it asks for repairs, but not for an audit: another run compares nothing that could be repaired.
    pub fn repairs_nothing(&self) -> bool {
        self.repair && self.mode != RunMode::Audit
    }

    /// Approves the deletions of a run that the deletion guard stopped. The new run is the same, but may delete more
    /// than the guard allows.
    ///
    /// # Errors
    ///
    /// Why `run` cannot be approved: it is not the `last` of its Source, or something other than the guard stopped it.
    /// In that case the run did not ask for an approval. An approval must not count for deletions that the operator has
    /// not seen.
    pub fn approving(run: RunId, last: &FleetRun) -> Result<Self, String> {
        let FleetRun { spec, state, .. } = last;
        if spec.id != run {
            return Err(format!(
                "the last run of {} is {}, and only that can be approved",
                spec.source, spec.id
            ));
        }
        if !matches!(state, RunState::Failed(stopped) if stopped.by_guard) {
            return Err(format!(
                "the run {run} is {}, and not because of the guard: only a run that the guard has stopped can be approved. Ask for \
                 another run instead",
                state.name(),
            ));
        }
        Ok(Self { mode: spec.mode, allow_deletes: true, repair: spec.repair })
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// The run ID.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The Source ID.
    #[schema(value_type = String)]
    pub source: SourceId,
    /// The name of the Source, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub name: Option<SourceName>,
    /// The state of the run.
    #[schema(schema_with = state)]
    pub state: Cow<'static, str>,
    /// Whether all that the Source lists is stored, once the run is finished. Not of a backfill or a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub in_sync: Option<bool>,
    /// Why the run failed, or what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub message: Option<String>,
    /// Why a waiting run is not worked on, and when it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub waiting: Option<RunWait>,
    /// The scheduler that works on the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub owner: Option<String>,
    /// The mode of the run.
    #[schema(schema_with = mode)]
    pub mode: RunMode,
    /// What the run does as a backfill, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub backfill: Option<BackfillRun>,
    /// Where the run moves its Source to, if it does.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub moved: Option<MoveRun>,
    /// Whether the run may delete more than the deletion guard allows.
    pub allow_deletes: bool,
    /// Who requested the run.
    #[schema(schema_with = requested_by)]
    pub requested_by: AskedBy,
    /// When the run was requested.
    pub requested_at: Timestamp,
    /// When a scheduler started the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub started_at: Option<Timestamp>,
    /// When the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub finished_at: Option<Timestamp>,
    /// The counters of the run so far.
    pub counters: Counters,
}

/// Why a run waits, and until when. It takes no place at a scheduler meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunWait {
    /// The reason: the Source does not answer (`unreachable`), it asked for a pause (`retry-after`), or other runs have
    /// their turn (`turn`).
    #[schema(schema_with = wait_reason)]
    pub reason: WaitReason,
    /// Since when it has waited for this reason.
    pub since: Timestamp,
    /// When it is tried again.
    pub until: Timestamp,
    /// Tries in a row that ended with this reason.
    pub tries: u32,
}

impl From<&control::RunWait> for RunWait {
    fn from(wait: &control::RunWait) -> Self {
        Self { reason: wait.reason, since: wait.since, until: wait.until, tries: wait.tries }
    }
}

fn wait_reason() -> Schema {
    one_of(&WaitReason::ALL.map(WaitReason::as_str))
}

fn mode() -> Schema {
    one_of(&["auto", "baseline", "incremental", "audit"])
}

fn requested_by() -> Schema {
    one_of(&["operator", "schedule", "notification", "hint"])
}

impl Run {
    /// Builds the API form of a run in its current state, without the name of its Source.
    pub fn new(run: &FleetRun, status: &RunStatus<'_>) -> Self {
        let waiting = match status {
            RunStatus::Waiting(wait) => Some(RunWait::from(*wait)),
            _ => None,
        };
        let (message, owner) = match status {
            RunStatus::Failed { why } => (Some((*why).to_owned()), None),
            RunStatus::Waiting(wait) => (Some(wait.why.clone()), None),
            RunStatus::Running { owner, .. } | RunStatus::Interrupted { owner } => {
                (run.progress.waits_for.clone(), Some(owner.to_string()))
            }
            _ => (None, None),
        };
        let in_sync = match status {
            RunStatus::Finished { in_sync } if !run.is_task() => Some(*in_sync),
            _ => None,
        };
        Self {
            run: run.spec.id,
            source: run.spec.source.clone(),
            name: None,
            state: status.name().into(),
            in_sync,
            message,
            waiting,
            owner,
            mode: run.spec.mode,
            backfill: BackfillRun::of(run),
            moved: MoveRun::of(run),
            allow_deletes: run.spec.allow_deletes,
            requested_by: run.spec.asked_by,
            requested_at: run.spec.asked_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            counters: (&run.progress.counters).into(),
        }
    }

    /// Whether the run is in a final state.
    pub fn is_over(&self) -> bool {
        matches!(&*self.state, "finished" | "failed" | "cancelled")
    }
}
