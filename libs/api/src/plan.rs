//! Plans: the estimate of each strategy that brings a Source in sync.

use std::borrow::Cow;

use control::{Plan as FleetPlan, PlanState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::schema::one_of;

/// The estimate of each strategy that brings a Source in sync, as far as it is known. A plan expires after 15 minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// The plan ID.
    pub id: String,
    /// The entry URL.
    pub entry: String,
    /// The state of the plan.
    #[schema(schema_with = state)]
    pub state: Cow<'static, str>,
    /// When the plan was requested.
    pub requested_at: Timestamp,
    /// The estimate, once the plan is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = PlanEstimate, required = false)]
    pub estimate: Option<PlanEstimate>,
    /// Why the plan failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub message: Option<String>,
}

/// The estimates of all strategies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanEstimate {
    /// The strategies that the Source offers: the first 50.
    pub strategies: Vec<PlanStrategy>,
    /// How many more strategies there are.
    pub strategies_omitted: u64,
    /// Mean response time of the Source, in milliseconds.
    pub latency_ms: u64,
    /// Requests that the estimate took.
    pub requests: u64,
    /// Documents that could not be read, the first 20. Their entries are missing from all figures.
    pub unread: Vec<PlanUnread>,
    /// How many more documents could not be read.
    pub unread_omitted: u64,
    /// The metadata formats of an OAI-PMH repository, the first 50, and what their records name: files with digests,
    /// files, or landing pages. Absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub formats: Vec<String>,
}

/// One strategy and its estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStrategy {
    /// The set of resources.
    pub set: String,
    /// The capability of the document that is read, as the specification names it.
    #[schema(schema_with = capability)]
    pub capability: String,
    /// Documents to read.
    pub documents: u64,
    /// Resources that lists name, or packages of dumps.
    pub listed: u64,
    /// How many of them are stored.
    pub stored: u64,
    /// Requests besides those for the documents.
    pub requests: u64,
    /// Bytes to receive. Absent where some lengths are not declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub bytes: Option<u64>,
    /// Estimated duration in milliseconds. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub time_ms: Option<u64>,
    /// Whether a run would choose this strategy.
    pub chosen: bool,
}

/// A document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanUnread {
    /// Its URI.
    pub uri: String,
    /// Why it could not be read.
    pub message: String,
}

fn state() -> Schema {
    one_of(&["requested", "working", "done", "failed"])
}

fn capability() -> Schema {
    one_of(&["resourcelist", "resourcedump", "changelist", "changedump"])
}

impl Plan {
    /// Whether the plan is done or failed, so that no scheduler works on it.
    pub fn is_over(&self) -> bool {
        matches!(&*self.state, "done" | "failed")
    }
}

impl From<&FleetPlan> for Plan {
    fn from(plan: &FleetPlan) -> Self {
        let (state, estimate, message) = match &plan.state {
            PlanState::Asked => ("requested", None, None),
            PlanState::Taken { .. } => ("working", None, None),
            PlanState::Done { estimate, .. } => ("done", Some(estimate.clone().into()), None),
            PlanState::Failed { why, .. } => ("failed", None, Some(why.clone())),
        };
        Self {
            id: plan.id.to_string(),
            entry: plan.source.entry.to_string(),
            state: state.into(),
            requested_at: plan.asked_at,
            estimate,
            message,
        }
    }
}

impl From<control::PlanEstimate> for PlanEstimate {
    fn from(estimate: control::PlanEstimate) -> Self {
        let strategy = |way: control::PlanWay| PlanStrategy {
            set: way.set.to_string(),
            capability: way.capability,
            documents: way.documents,
            listed: way.named,
            stored: way.held,
            requests: way.requests,
            bytes: way.bytes,
            time_ms: way.time_ms,
            chosen: way.chosen,
        };
        let unread = |unread: control::PlanUnread| PlanUnread { uri: unread.uri, message: unread.why };
        Self {
            strategies: estimate.ways.into_iter().map(strategy).collect(),
            strategies_omitted: estimate.ways_left_out,
            latency_ms: estimate.wait_ms,
            requests: estimate.requests,
            unread: estimate.unread.into_iter().map(unread).collect(),
            unread_omitted: estimate.unread_left_out,
            formats: estimate.formats,
        }
    }
}
