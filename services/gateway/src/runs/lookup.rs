//! Where a run is stored: among the syncs, among the tasks, or among the earlier ones of both.

use control::{Run as FleetRun, Runs, Versioned, WatchCache};
use model::{RunId, SourceId};

use crate::api_error::ApiError;
use crate::state::Gateway;

/// The current or last run of a Source with this ID, and the view that shows it.
pub(crate) async fn current<'a>(
    gateway: &'a Gateway,
    source: &SourceId,
    run: RunId,
) -> Result<Option<(Versioned<FleetRun>, &'a WatchCache<FleetRun>)>, ApiError> {
    let (control, views) = (&gateway.control, &gateway.views);
    for (runs, view) in [(control.runs(), &views.runs), (control.tasks(), &views.tasks)] {
        if let Some(found) = runs.get(source).await?.filter(|found| found.spec.id == run) {
            return Ok(Some((found, view)));
        }
    }
    Ok(None)
}

/// An earlier run of a Source, if it is stored.
pub(crate) async fn earlier(gateway: &Gateway, source: &SourceId, run: RunId) -> Result<FleetRun, ApiError> {
    let past = gateway.control.runs().past(source).await?;
    past.into_iter().find(|past| past.spec.id == run).ok_or_else(|| super::no_run(source, run))
}

/// Where the state of a run is changed.
pub(crate) async fn table<'a>(
    gateway: &'a Gateway,
    source: &SourceId,
    run: RunId,
) -> Result<&'a Runs, ApiError> {
    let tasks = gateway.control.tasks();
    let is_task = tasks.get(source).await?.is_some_and(|task| task.spec.id == run);
    Ok(if is_task { tasks } else { gateway.control.runs() })
}
