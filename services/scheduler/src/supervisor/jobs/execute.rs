//! The job that executes a run in its place, under the lease of its Source.

use std::sync::Arc;
use std::time::Duration;

use control::{Claim, ControlError, Lease, Run, RunState, SourceSpec, Versioned};
use model::SourceId;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Outcome, VIEW_LAG, shown};
use crate::context::SchedulerContext;
use crate::hints;
use crate::places::Place;
use crate::run::{RunExecutor, RunExit};

/// How long a run that has a place waits for the lease of its Source.
const LEASE_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two requests for a lease that another scheduler holds.
const BETWEEN_CLAIMS: Duration = Duration::from_millis(250);

/// Executes a run that has a place. With `preempt`, a task leaves it to a run of the Source.
pub(in crate::supervisor) async fn run(
    context: SchedulerContext,
    spec: Versioned<SourceSpec>,
    run: Arc<Run>,
    mut place: Place,
    preempt: CancellationToken,
    keep: CancellationToken,
) -> Outcome {
    let source = spec.id.clone();
    match execute(&context, &spec, &run, &mut place, &preempt, &keep).await {
        Ok(RunExit::Settled) => {
            drop(place);
            shown(&mut context.view_of(&run), &source, |now| !is_same_running(now, &run)).await;
            if run.is_task() {
                return Outcome::Ended(None);
            }
            let ended = context.runs.get(&source).map(|now| (Arc::clone(&spec.value), now.value));
            Outcome::Ended(ended.filter(|(_, now)| now.spec.id == run.spec.id))
        }
        Ok(RunExit::Parked | RunExit::Stopping) => {
            drop(place);
            shown(&mut context.view_of(&run), &source, |now| !is_same_running(now, &run)).await;
            Outcome::Ended(None)
        }
        // The run still needs work. Without a pause it would be retried at once, and for ever.
        Ok(RunExit::Lost | RunExit::Later) => Outcome::Failed,
        Err(error) => {
            tracing::warn!(source.id = %source, %error, "a Source cannot be looked after now");
            Outcome::Failed
        }
    }
}

async fn execute(
    context: &SchedulerContext,
    spec: &Versioned<SourceSpec>,
    run: &Run,
    place: &mut Place,
    preempt: &CancellationToken,
    keep: &CancellationToken,
) -> Result<RunExit, ControlError> {
    let source = &spec.id;
    let Some(lease) = acquire(context, source, keep).await? else { return Ok(RunExit::Later) };
    context.metrics.lease("acquired");
    if !run.is_task()
        && let Err(error) = hints::take_up(context, source, run).await
    {
        tracing::warn!(source.id = %source, %error, "a hint cannot be taken up now: there will be one more run");
    }
    let executor = RunExecutor::new(context, &lease, spec.clone(), run, preempt, keep, place);
    // Boxed: the stages of a run, in one future, overflow the stack of a debug build's worker.
    let tended = Box::pin(executor.tend(run)).await;
    context.metrics.lease(if lease.lost().is_cancelled() { "lost" } else { "released" });
    // Whatever the result: others may own the Source now.
    lease.release().await;
    tended
}

/// The lease of the Source, as soon as no other scheduler has it. None if that takes long, or this scheduler must
/// release the Source.
async fn acquire(
    context: &SchedulerContext,
    source: &SourceId,
    keep: &CancellationToken,
) -> Result<Option<Lease>, ControlError> {
    let claiming = async {
        loop {
            let now = context.clock.now();
            match context.control.leases().acquire(source, &context.me, now).await? {
                Claim::Taken(lease) => return Ok(lease),
                Claim::Held(record) => {
                    tracing::debug!(source.id = %source, holder = %record.holder, "waiting for the lease");
                }
            }
            // All leases are renewed constantly; only this one matters, and reading it is a request. The view may not
            // show its present holder yet, hence the pause.
            sleep(BETWEEN_CLAIMS).await;
            let ended = context.leases.clone();
            let ended = async move {
                let mut ended = ended;
                ended.wait_for(|leases| leases.get(source).is_none().then_some(())).await;
            };
            // The event of its end may have been missed.
            let _ = timeout(VIEW_LAG, ended).await;
        }
    };
    tokio::select! {
        claimed = timeout(LEASE_PATIENCE, claiming) => claimed.ok().transpose(),
        () = keep.cancelled() => Ok(None),
    }
}

/// Whether a view still shows the run as the one that was just left.
fn is_same_running(now: &Run, left: &Run) -> bool {
    now.spec.id == left.spec.id && matches!(now.state, RunState::Running { .. })
}
