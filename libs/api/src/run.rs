//! Runs: what is asked for, and how far it is.

use std::borrow::Cow;

use control::{AskedBy, Run as FleetRun, RunMode, RunState, Standing};
use jiff::Timestamp;
use model::{Counters, RunId, SourceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::schema::{one_of, state};

/// What is asked for with a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// How the Source is brought in step; what is known of it decides where nothing is said. An audit compares.
    #[serde(default)]
    #[schema(schema_with = mode)]
    pub mode: RunMode,
    /// Whether more resources may be deleted for their absence than the Source's guard allows, in this run.
    #[serde(default)]
    pub allow_deletes: bool,
    /// Whether an audit puts right what differs.
    #[serde(default)]
    pub repair: bool,
}

impl Submit {
    /// The run that goes on where the guard has stopped one, with the operator's word: the same again, which may delete more than the
    /// guard allows.
    ///
    /// # Errors
    ///
    /// Why `run` cannot be approved: it is not the `last` of its Source, or something else than the guard stopped it. Then no word of an
    /// operator was asked for, and none shall count for deletions that nobody has seen.
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
    /// Its name.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The Source.
    #[schema(value_type = String)]
    pub source: SourceId,
    /// How it stands.
    #[schema(schema_with = state)]
    pub state: Cow<'static, str>,
    /// Whether all that the Source offers is held, once it is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub in_sync: Option<bool>,
    /// Why it failed, or what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub why: Option<String>,
    /// Who works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub owner: Option<String>,
    /// How the Source is brought in step.
    #[schema(schema_with = mode)]
    pub mode: RunMode,
    /// Whether it may delete more than the guard allows.
    pub allow_deletes: bool,
    /// Who asked for it.
    #[schema(schema_with = asked_by)]
    pub asked_by: AskedBy,
    /// When.
    pub asked_at: Timestamp,
    /// When somebody first worked on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub finished_at: Option<Timestamp>,
    /// What it counted so far, by name.
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub counters: Counters,
}

fn mode() -> Schema {
    one_of(&["auto", "baseline", "incremental", "audit"])
}

fn asked_by() -> Schema {
    one_of(&["operator", "schedule", "notification", "hint"])
}

impl Run {
    /// A run of the fleet as it stands.
    pub fn new(run: &FleetRun, standing: &Standing<'_>) -> Self {
        let (why, owner) = match standing {
            Standing::Failed { why } => (Some((*why).to_owned()), None),
            Standing::Running { owner, .. } | Standing::Interrupted { owner } => {
                (run.progress.waits_for.clone(), Some(owner.to_string()))
            }
            _ => (None, None),
        };
        let in_sync = match standing {
            Standing::Finished { in_sync } => Some(*in_sync),
            _ => None,
        };
        Self {
            run: run.spec.id,
            source: run.spec.source.clone(),
            state: standing.name().into(),
            in_sync,
            why,
            owner,
            mode: run.spec.mode,
            allow_deletes: run.spec.allow_deletes,
            asked_by: run.spec.asked_by,
            asked_at: run.spec.asked_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            counters: run.progress.counters.clone(),
        }
    }

    /// Whether it is over, however it ended.
    pub fn is_over(&self) -> bool {
        matches!(&*self.state, "finished" | "failed" | "cancelled")
    }
}
