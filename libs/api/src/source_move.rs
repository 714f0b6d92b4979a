//! Moves of Sources to other entry URLs.

use control::{Run as FleetRun, Task};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

/// A request to harvest a Source from another entry URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// The new entry URL.
    #[schema(value_type = String, format = "uri")]
    pub to: Url,
}

/// A run that moves a Source, or takes a move back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoveRun {
    /// The ID of the Source that is harvested after it.
    pub source: String,
    /// Its entry URL.
    #[schema(value_type = String, format = "uri")]
    pub to: Url,
    /// Whether a move is taken back.
    pub back: bool,
}

impl MoveRun {
    /// What a run does as a move, if it is one.
    pub(crate) fn of(run: &FleetRun) -> Option<Self> {
        let (to, back) = match run.spec.task.as_ref()? {
            Task::Move { to } => (to, false),
            Task::MoveBack { to } => (to, true),
            Task::Backfill(_) => return None,
        };
        Some(Self { source: to.id.to_string(), to: to.entry.clone(), back })
    }
}
