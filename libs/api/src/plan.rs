//! Plans: what each way of bringing a Source in step would take.

use std::borrow::Cow;

use control::{Plan as FleetPlan, PlanState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::schema::one_of;

/// What each way of bringing a Source in step would take, as far as that is known. It is forgotten after a quarter of an hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Its name.
    pub id: String,
    /// The way in.
    pub entry: String,
    /// How it stands.
    #[schema(schema_with = state)]
    pub state: Cow<'static, str>,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// What was found out, once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = PlanEstimate, required = false)]
    pub estimate: Option<PlanEstimate>,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub why: Option<String>,
}

/// What each way would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanEstimate {
    /// The ways that the Source offers: the first 50.
    pub ways: Vec<PlanWay>,
    /// How many more ways there are.
    pub ways_left_out: u64,
    /// How long the Source took to answer, on the mean, in milliseconds.
    pub wait_ms: u64,
    /// Requests made to find that out.
    pub requests: u64,
    /// Documents that could not be read, the first 20: what they name is in none of the figures.
    pub unread: Vec<PlanUnread>,
    /// How many more could not be read.
    pub unread_left_out: u64,
}

/// One way, and what it would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanWay {
    /// The set of resources.
    pub set: String,
    /// What is read, as the specification names it.
    #[schema(schema_with = capability)]
    pub capability: String,
    /// Documents read.
    pub documents: u64,
    /// Resources named by lists, or packages named by dumps.
    pub named: u64,
    /// Those among them that are held.
    pub held: u64,
    /// Requests beside those for the documents.
    pub requests: u64,
    /// Bytes to be received; absent where not all lengths are declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub bytes: Option<u64>,
    /// How long it would take, in milliseconds; absent where nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub time_ms: Option<u64>,
    /// Whether a run would go this way.
    pub chosen: bool,
}

/// A document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanUnread {
    /// Its URI.
    pub uri: String,
    /// Why.
    pub why: String,
}

fn state() -> Schema {
    one_of(&["asked", "working", "done", "failed"])
}

fn capability() -> Schema {
    one_of(&["resourcelist", "resourcedump", "changelist", "changedump"])
}

impl Plan {
    /// Whether nobody works on it any more.
    pub fn is_over(&self) -> bool {
        matches!(&*self.state, "done" | "failed")
    }
}

impl From<&FleetPlan> for Plan {
    fn from(plan: &FleetPlan) -> Self {
        let (state, estimate, why) = match &plan.state {
            PlanState::Asked => ("asked", None, None),
            PlanState::Taken { .. } => ("working", None, None),
            PlanState::Done { estimate, .. } => ("done", Some(estimate.clone().into()), None),
            PlanState::Failed { why, .. } => ("failed", None, Some(why.clone())),
        };
        Self {
            id: plan.id.to_string(),
            entry: plan.source.entry.to_string(),
            state: state.into(),
            asked_at: plan.asked_at,
            estimate,
            why,
        }
    }
}

impl From<control::PlanEstimate> for PlanEstimate {
    fn from(estimate: control::PlanEstimate) -> Self {
        let way = |way: control::PlanWay| PlanWay {
            set: way.set.to_string(),
            capability: way.capability,
            documents: way.documents,
            named: way.named,
            held: way.held,
            requests: way.requests,
            bytes: way.bytes,
            time_ms: way.time_ms,
            chosen: way.chosen,
        };
        let unread = |unread: control::PlanUnread| PlanUnread { uri: unread.uri, why: unread.why };
        Self {
            ways: estimate.ways.into_iter().map(way).collect(),
            ways_left_out: estimate.ways_left_out,
            wait_ms: estimate.wait_ms,
            requests: estimate.requests,
            unread: estimate.unread.into_iter().map(unread).collect(),
            unread_left_out: estimate.unread_left_out,
        }
    }
}
