//! The job that polls an idle Source in place of a run.

use std::sync::Arc;

use control::{AskedBy, ControlError, Run, SourceSpec, Versioned};
use discovery::PollOutcome;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Outcome, shown, submit};
use crate::context::SchedulerContext;
use crate::poll_turns::PollTurns;
use crate::probe;

/// Asks a Source that is due whether anything is new, in place of a run. Only news submits one.
pub(in crate::supervisor) async fn poll(
    context: SchedulerContext,
    spec: Versioned<SourceSpec>,
    last: Arc<Run>,
    turns: PollTurns,
    submissions: Arc<Semaphore>,
    keep: CancellationToken,
) -> Outcome {
    let poll = || async {
        let began = context.clock.now();
        let basis = last.poll_basis(&spec.spec, began)?;
        let client = probe::client(&context, &spec, &last.spec)?;
        Some((began, discovery::poll(&client, basis).await))
    };
    let polled = tokio::select! {
        polled = turns.poll(&spec.id, poll) => polled,
        () = keep.cancelled() => return Outcome::Ended(None),
    };
    let source = spec.id.clone();
    match polled {
        Some((began, Ok(PollOutcome::Unchanged { .. }))) => {
            context.metrics.polled("unchanged");
            match context.control.runs().polled(&source, last.spec.id, began).await {
                Ok(_) => {
                    context.metrics.statuses.note(&source, |status| status.last_success = Some(began));
                    shown(&mut context.runs.clone(), &source, |run| run.polled_at() == Some(began)).await;
                    Outcome::Polled(spec.value)
                }
                // Another run was submitted meanwhile.
                Err(ControlError::Refused(_) | ControlError::Absent { .. }) => Outcome::Ended(None),
                Err(error) => {
                    tracing::warn!(source.id = %source, %error, "it cannot be recorded that nothing is new");
                    Outcome::Failed
                }
            }
        }
        Some((_, Err(error))) => {
            context.metrics.polled("failed");
            let submitted =
                submit(context.clone(), source.clone(), AskedBy::Schedule, submissions, keep).await;
            let Some(run) = context.runs.get(&source).filter(|run| run.wants_work()) else {
                return submitted;
            };
            // The run would find the same: it waits for its Source, and takes no place for that.
            let now = context.clock.now();
            let Some(wait) = probe::wait_after(&error, None, now) else { return submitted };
            if let Err(error) = context.control.runs().postpone(&source, run.spec.id, wait.clone(), now).await
            {
                tracing::debug!(source.id = %source, %error, "the run begins, and finds the Source silent");
            }
            shown(&mut context.runs.clone(), &source, |run| run.waiting.as_ref() == Some(&wait)).await;
            submitted
        }
        Some((_, Ok(PollOutcome::News { .. }))) => {
            context.metrics.polled("news");
            submit(context, source, AskedBy::Schedule, submissions, keep).await
        }
        None => submit(context, source, AskedBy::Schedule, submissions, keep).await,
    }
}
