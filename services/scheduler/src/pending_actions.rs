//! Problem actions of the operator since the Source's last run.

use catalog::Catalog;
use control::{ActionKind, ProblemActionRequest};
use harvest::{HarvestError, ProblemAction, apply_problem_action};
use model::{ProblemRecord, SourceId, Subject};

use crate::context::SchedulerContext;

/// Applies the actions on a Source's problems, in order, as the writer of its catalog. Each is removed once it is
/// written: after a crash it is applied again, which changes nothing more. Actions that cannot be read now wait for
/// the next run.
///
/// # Errors
/// When the catalog fails.
pub(crate) async fn take_up(
    context: &SchedulerContext,
    source: &SourceId,
    catalog: &Catalog,
) -> Result<(), HarvestError> {
    let words = match context.control.problem_actions().of(source).await {
        Ok(words) => words,
        Err(error) => {
            tracing::warn!(source.id = %source, %error, "what was said about problems is not known; it waits for the next run");
            return Ok(());
        }
    };
    for request in words {
        let said = match &request.word {
            ActionKind::Retry { .. } => ProblemAction::Retry,
            ActionKind::Ignore { note } => ProblemAction::Ignore { note: note.clone() },
            ActionKind::Undo => ProblemAction::Undo,
        };
        let told = apply_problem_action(catalog, &*context.clock, &said, |subject, problem| {
            is_meant(&request, subject, problem)
        });
        let told = told.await?;
        tracing::info!(source.id = %source, word.id = %request.id, problems = told.len(), "the operator's word is taken up");
        if let Err(error) = context.control.problem_actions().forget(&request).await {
            tracing::warn!(source.id = %source, %error, "a word that was taken up is taken up again by the next run");
        }
    }
    Ok(())
}

/// Whether an action is about a problem. An ignored problem is retried only if the action says so, or names it.
fn is_meant(request: &ProblemActionRequest, subject: &Subject, problem: &ProblemRecord) -> bool {
    let unless_ignored = match request.word {
        ActionKind::Retry { ignored } => ignored || problem.ignored.is_none() || request.about.names(subject),
        ActionKind::Ignore { .. } | ActionKind::Undo => true,
    };
    unless_ignored && request.about.takes(subject, problem.reason)
}
