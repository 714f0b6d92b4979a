//! A Source that the fleet harvests.

use control::{Revision, Schedule, SourceSpec};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Spec;

/// A Source that the fleet harvests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Source {
    /// The Source ID, derived from the entry URL.
    pub id: String,
    /// The revision, also sent in the header `ETag`. Absent in the response to a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub revision: Option<u64>,
    /// When the schedule starts the next run. Runs that are requested otherwise do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub next_due: Option<Timestamp>,
    /// The spec of the Source.
    pub spec: Spec,
}

impl Source {
    /// Builds the API form of a stored Source, or, without a revision, of one that would be stored.
    pub fn new(source: &SourceSpec, revision: Option<Revision>, now: Timestamp) -> Self {
        let due = |schedule: &Schedule| schedule.next_after(&source.id, now).ok();
        Self {
            id: source.id.to_string(),
            revision: revision.map(Revision::get),
            next_due: source.schedule.as_ref().filter(|_| source.enabled).and_then(due),
            spec: source.spec.clone(),
        }
    }
}
