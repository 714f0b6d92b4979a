//! Problem actions of the operator: retry or ignore (docs/adr/0021).

use catalog::{Batch, Catalog};
use futures::TryStreamExt;
use model::{ChangeEvent, ChangeLogEntry, Clock, Ignored, ProblemRecord, ResourceUri, RunId, Subject};

use crate::error::HarvestError;

/// Records per batch.
const BATCH: usize = 500;

/// Action on problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemAction {
    /// The next run queues them again, whatever the earlier action.
    Retry,
    /// No further attempts.
    Ignore {
        /// Reason.
        note: String,
    },
    /// No longer ignored.
    Undo,
}

/// Applies the operator's action to each problem that is `wanted`; returns their subjects. A repeated action replaces
/// the earlier one. May be repeated after a crash.
///
/// # Errors
/// When the catalog fails.
pub async fn apply_problem_action(
    catalog: &Catalog,
    clock: &dyn Clock,
    action: &ProblemAction,
    mut wanted: impl FnMut(&Subject, &ProblemRecord) -> bool,
) -> Result<Vec<Subject>, HarvestError> {
    let run = RunId::fresh();
    let mut changed = Vec::new();
    let mut batch = Batch::new();
    let mut problems = catalog.scan_problems().await?;
    while let Some((subject, mut problem)) = problems.try_next().await? {
        if !wanted(&subject, &problem) || *action == ProblemAction::Undo && problem.ignored.is_none() {
            continue;
        }
        let now = clock.now();
        problem.ignored = match action {
            ProblemAction::Ignore { note } => Some(Ignored { note: note.clone(), at: now }),
            ProblemAction::Retry | ProblemAction::Undo => None,
        };
        if *action == ProblemAction::Retry {
            // The next run that needs the document requests it, however long it has failed.
            problem.next_attempt_at = matches!(subject, Subject::Document(_)).then_some(now);
        }
        batch.put_problem(&subject, &problem);
        if let (Subject::Resource(uri), Some(listing)) = (&subject, &problem.listing)
            && let Ok(uri) = ResourceUri::try_from(uri.clone())
        {
            let event = match action {
                ProblemAction::Ignore { note } => ChangeEvent::Ignored { note: note.clone() },
                ProblemAction::Retry | ProblemAction::Undo => ChangeEvent::Retried,
            };
            let document = listing.document.clone();
            batch.append_change(&ChangeLogEntry::new(uri.clone(), event, now, run, document));
            // An interrupted run has planned it already.
            if problem.ignored.is_some()
                && let Some(pending) = catalog.pending(&uri).await?
                && !pending.repair
                && problem.is_about(&pending.declaration, &pending.listing)
            {
                batch.delete_pending(&uri);
            }
        }
        changed.push(subject);
        if batch.len() >= BATCH {
            catalog.commit(std::mem::take(&mut batch)).await?;
        }
    }
    drop(problems);
    catalog.commit(batch).await?;
    Ok(changed)
}
