//! A Source that the fleet harvests.

use control::{Revision, Schedule, SourceSpec};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Wanted;

/// A Source that the fleet harvests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Source {
    /// Its name, which follows from its entry.
    pub id: String,
    /// Which writing of it this is: also in the header `ETag`. Absent in what a dry run shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub revision: Option<u64>,
    /// When its schedule is due next, whatever else asks for runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub next_due: Option<Timestamp>,
    /// What is wanted of it.
    pub wanted: Wanted,
}

impl Source {
    /// A Source as it is kept, or, without a revision, as it would be.
    pub fn new(spec: &SourceSpec, revision: Option<Revision>, now: Timestamp) -> Self {
        let due = |schedule: &Schedule| schedule.next_after(&spec.id, now).ok();
        Self {
            id: spec.id.to_string(),
            revision: revision.map(Revision::get),
            next_due: spec.schedule.as_ref().filter(|_| spec.enabled).and_then(due),
            wanted: Wanted::from(spec),
        }
    }
}
