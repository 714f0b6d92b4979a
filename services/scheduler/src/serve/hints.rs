//! Hints that a Source has changed: a run that begins takes them up.

use control::{AskedBy, ControlError, Run, RunMode, Wanted};
use model::SourceId;

use super::Crew;

/// Forgets what was hinted before a run that has read nothing yet, as the holder of the Source's lease. What is hinted from now on waits for the
/// next one, as does all of it where this one is an audit, goes by what a hub has delivered and may read no list, is not wanted any more, or goes
/// on with what another scheduler has begun.
///
/// # Errors
/// [`ControlError::Unavailable`]: the hint stays, and there will be a run more.
pub(super) async fn take_up(crew: &Crew, source: &SourceId, run: &Run) -> Result<(), ControlError> {
    let Some(hint) = crew.hints.get(source) else { return Ok(()) };
    // The view of runs may be late: what it does not know yet could have been begun.
    let run = crew.control.runs().get(source).await?.filter(|last| last.spec.id == run.spec.id);
    let is_new = |run: &Run| run.started_at.is_none() && run.wanted == Wanted::Run;
    let looks = |run: &Run| run.spec.mode != RunMode::Audit && run.spec.asked_by != AskedBy::Notification;
    if run.is_some_and(|run| is_new(&run) && looks(&run)) {
        crew.control.hints().take_up(&hint).await?;
        tracing::info!(source.id = %source, by = hint.by, "a hint is taken up by the run that begins");
    }
    Ok(())
}
