//! A Source that the fleet harvests.

use control::{Revision, Run, Schedule, SourceSpec};
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
    /// The title of the web page at the entry URL, as discovery found it: at most 200 characters. Pages show it while
    /// the spec has no title.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub proposed_title: Option<String>,
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
            proposed_title: None,
            spec: source.spec.clone(),
        }
    }

    /// With the title that the runs of the Source propose. `last`: its current or last run.
    #[must_use]
    pub fn proposed_by(self, last: Option<&Run>) -> Self {
        Self { proposed_title: last.and_then(Run::proposed_title).map(str::to_owned), ..self }
    }

    /// Its title: the one that an operator has set, or else the proposed one.
    pub fn title(&self) -> Option<&str> {
        self.spec.title.as_deref().or(self.proposed_title.as_deref())
    }
}
