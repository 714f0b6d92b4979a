//! Backfills: what the operator requests, and what was done.

use std::num::NonZeroU32;

use control::{Backfill, Run as FleetRun, Task, TaskProgress};
use jiff::Timestamp;
use model::BackfillCounts;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request for earlier versions of a Source's stored resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillRequest {
    /// The newest N earlier versions of each resource, stored ones included. From now on, syncs keep at least as many. If
    /// not given: as many as the syncs keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, minimum = 1, required = false)]
    pub versions: Option<NonZeroU32>,
    /// Only versions that the Source had at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub since: Option<Timestamp>,
    /// Whether the Source's Archives, its lists of the past, are read too.
    #[serde(default)]
    pub archives: bool,
    /// Whether versions without a declared digest may come from other hosts than the resource's. Web archives may rewrite
    /// the pages that they serve.
    #[serde(default)]
    pub any_host: bool,
}

/// A run that is a backfill: its request, and what it did so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillRun {
    /// The request.
    pub request: BackfillRequest,
    /// The counts, until the last resource whose versions are all committed: resources, versions that are known, held,
    /// stored, newer, older or left out, failures by reason, bytes, requests.
    #[schema(value_type = Object)]
    pub counts: BackfillCounts,
}

impl BackfillRun {
    /// What a run does as a backfill, if it is one.
    pub(crate) fn of(run: &FleetRun) -> Option<Self> {
        let Some(Task::Backfill(asked)) = &run.spec.task else { return None };
        let counts = match &run.progress.task {
            Some(TaskProgress::Backfill { counts, .. }) => counts.clone(),
            None => BackfillCounts::default(),
        };
        let Backfill { versions, since, archives, any_host } = asked.clone();
        Some(Self { request: BackfillRequest { versions, since, archives, any_host }, counts })
    }
}

impl From<&BackfillRequest> for Backfill {
    fn from(request: &BackfillRequest) -> Self {
        let BackfillRequest { versions, since, archives, any_host } = request.clone();
        Self { versions, since, archives, any_host }
    }
}
