//! Consumes hints of a changed Source when a run begins.

use control::{AskedBy, ControlError, DesiredState, Run};
use model::{RunMode, SourceId};

use crate::context::SchedulerContext;

/// Removes the hints from before a run that has read nothing yet, as the holder of the Source's lease. Later hints
/// wait for the next run. All hints wait for it in these cases: this run is an audit, goes by hub deliveries and may
/// read no list, is cancelled, or resumes another scheduler's run.
///
/// # Errors
/// [`ControlError::Unavailable`]: the hint stays, and causes one more run.
pub(crate) async fn take_up(
    context: &SchedulerContext,
    source: &SourceId,
    run: &Run,
) -> Result<(), ControlError> {
    let Some(hint) = context.hints.get(source) else { return Ok(()) };
    // The view of runs may lag: a run that it does not show yet could have begun.
    let run = context.control.runs().get(source).await?.filter(|last| last.spec.id == run.spec.id);
    let is_new = |run: &Run| run.started_at.is_none() && run.wanted == DesiredState::Run;
    let looks = |run: &Run| run.spec.mode != RunMode::Audit && run.spec.asked_by != AskedBy::Notification;
    if run.is_some_and(|run| is_new(&run) && looks(&run)) {
        context.control.hints().take_up(&hint).await?;
        tracing::info!(source.id = %source, by = hint.by, "a hint is taken up by the run that begins");
    }
    Ok(())
}
