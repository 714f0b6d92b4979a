//! The jobs of a supervisor: each works on one Source, and ends by itself.

use std::sync::Arc;
use std::time::Duration;

use control::{
    AskedBy, Claim, ControlError, Lease, Run, RunSpec, RunState, SourceSpec, Versioned, WatchCache,
};
use discovery::PollOutcome;
use model::{RunId, RunMode, SourceId};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::context::SchedulerContext;
use crate::due::{self, was_poll, was_success};
use crate::hints;
use crate::places::Place;
use crate::poll_turns::PollTurns;
use crate::probe::{self, Probe};
use crate::run::{RunExecutor, RunExit};
use crate::source_line::SourceLine;

/// Jobs that ask the control store at a time.
const SUBMISSIONS: usize = 64;
/// How long a job waits for the view to show what it wrote: the view follows the server within milliseconds.
const VIEW_LAG: Duration = Duration::from_secs(1);
/// How long a run that has a place waits for the lease of its Source.
const LEASE_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two requests for a lease that another scheduler holds.
const BETWEEN_CLAIMS: Duration = Duration::from_millis(250);

/// What a job leaves.
pub(super) enum Outcome {
    /// What is known of a Source's past.
    LookedBack(SourceLine),
    /// A poll found nothing new at this Source.
    Polled(Arc<SourceSpec>),
    /// The Source of this run answers.
    Answered(RunId),
    /// It is done. After a run that ended: the run, as it is now.
    Ended(Option<(Arc<SourceSpec>, Arc<Run>)>),
    /// It is tried again after a while.
    Failed,
}

/// How many jobs of a kind are under way at a time. None of them takes a place.
pub(super) struct JobLimits {
    pub(super) submissions: Arc<Semaphore>,
    pub(super) probes: Arc<Semaphore>,
    pub(super) polls: PollTurns,
}

impl JobLimits {
    pub(super) fn new(settings: &Settings) -> Self {
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.max(1)));
        let probes = settings.max_concurrent_probes;
        let polls = PollTurns::new(probes, settings.poll_turn());
        Self { submissions: semaphore(SUBMISSIONS), probes: semaphore(probes), polls }
    }
}

/// Restores from past runs when the Source was last in sync, for the metrics, and when it was last polled without a
/// hub's notification.
pub(super) async fn look_back(
    context: SchedulerContext,
    source: SourceId,
    limit: Arc<Semaphore>,
    keep: CancellationToken,
) -> Outcome {
    let now = context.clock.now();
    let mut runs: Vec<Run> =
        context.runs.get(&source).map(|run| run.value.as_ref().clone()).into_iter().collect();
    if !runs.is_empty() && !runs.iter().all(|run| was_success(run) && was_poll(run)) {
        let past = async {
            let _turn = limit.acquire().await;
            context.control.runs().past(&source).await
        };
        let past = tokio::select! {
            past = past => past,
            () = keep.cancelled() => Ok(Vec::new()),
        };
        match past {
            Ok(past) => runs.extend(past),
            Err(error) => {
                tracing::debug!(source.id = %source, %error, "it is not known when the Source was last in sync");
            }
        }
    }
    // A poll after a run counts as a later one.
    let began = |run: &Run| run.polled_at().max(run.started_at);
    let last_success = runs.iter().find(|run| was_success(run)).and_then(began);
    let last_poll = runs.iter().find(|run| was_poll(run)).and_then(began);
    context.metrics.statuses.note(&source, |status| {
        (status.since, status.last_success) = (Some(now), last_success);
    });
    Outcome::LookedBack(SourceLine {
        polled_at: last_poll.unwrap_or(now),
        looked_at: runs.iter().find_map(|run| due::looked_at(Some(run), None)),
        fruitless: due::fruitless(&runs),
        ..SourceLine::default()
    })
}

/// Submits the run that is due.
pub(super) async fn submit(
    context: SchedulerContext,
    source: SourceId,
    asked_by: AskedBy,
    limit: Arc<Semaphore>,
    keep: CancellationToken,
) -> Outcome {
    let submitting = async {
        let _turn = limit.acquire().await;
        let spec = RunSpec {
            id: RunId::fresh(),
            source: source.clone(),
            mode: RunMode::Auto,
            asked_by,
            asked_at: context.clock.now(),
            allow_deletes: false,
            repair: false,
        };
        match context.control.runs().submit(spec).await {
            // The operator was quicker.
            Ok(_) | Err(ControlError::Exists { .. }) => {}
            Err(error) => {
                tracing::warn!(source.id = %source, %error, "the run that is due cannot be submitted now");
                return Outcome::Failed;
            }
        }
        shown(&mut context.runs.clone(), &source, |run| !run.state.is_over()).await;
        Outcome::Ended(None)
    };
    tokio::select! {
        outcome = submitting => outcome,
        () = keep.cancelled() => Outcome::Ended(None),
    }
}

/// Asks whether the Source of a queued run answers. Then the run needs a place; otherwise it waits.
pub(super) async fn probe(
    context: SchedulerContext,
    spec: Arc<SourceSpec>,
    run: Arc<Run>,
    limit: Arc<Semaphore>,
    keep: CancellationToken,
) -> Outcome {
    let probing = async {
        let _turn = limit.acquire().await;
        probe::probe(&context, &spec, &run).await
    };
    let probed = tokio::select! {
        probed = probing => probed,
        () = keep.cancelled() => return Outcome::Ended(None),
    };
    match probed {
        Probe::Answers => Outcome::Answered(run.spec.id),
        Probe::Waits(wait) => {
            tracing::info!(source.id = %spec.id, why = wait.why, until = %wait.until, "the Source is asked again later");
            let now = context.clock.now();
            match context.control.runs().postpone(&spec.id, run.spec.id, wait.clone(), now).await {
                Ok(_) => {
                    shown(&mut context.runs.clone(), &spec.id, |run| run.waiting.as_ref() == Some(&wait))
                        .await
                }
                // The operator cancelled or paused it meanwhile.
                Err(ControlError::Refused(_) | ControlError::Absent { .. }) => {}
                Err(error) => {
                    tracing::warn!(source.id = %spec.id, %error, "it cannot be recorded that the Source is silent");
                    return Outcome::Failed;
                }
            }
            Outcome::Ended(None)
        }
    }
}

/// Asks a Source that is due whether anything is new, in place of a run. Only news submits one.
pub(super) async fn poll(
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

/// Executes a run that has a place.
pub(super) async fn run(
    context: SchedulerContext,
    spec: Versioned<SourceSpec>,
    run: Arc<Run>,
    mut place: Place,
    keep: CancellationToken,
) -> Outcome {
    let source = spec.id.clone();
    match execute(&context, &spec, &run, &mut place, &keep).await {
        Ok(RunExit::Settled) => {
            drop(place);
            shown(&mut context.runs.clone(), &source, |now| !is_same_running(now, &run)).await;
            let ended = context.runs.get(&source).map(|now| (Arc::clone(&spec.value), now.value));
            Outcome::Ended(ended.filter(|(_, now)| now.spec.id == run.spec.id))
        }
        Ok(RunExit::Parked | RunExit::Stopping) => {
            drop(place);
            shown(&mut context.runs.clone(), &source, |now| !is_same_running(now, &run)).await;
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
    keep: &CancellationToken,
) -> Result<RunExit, ControlError> {
    let source = &spec.id;
    let Some(lease) = acquire(context, source, keep).await? else { return Ok(RunExit::Later) };
    context.metrics.lease("acquired");
    if let Err(error) = hints::take_up(context, source, run).await {
        tracing::warn!(source.id = %source, %error, "a hint cannot be taken up now: there will be one more run");
    }
    let executor = RunExecutor::new(context, &lease, spec.clone(), run, keep, place);
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

/// Waits until the view shows the run of a Source like this, but not for long.
async fn shown(runs: &mut WatchCache<Run>, source: &SourceId, is_shown: impl Fn(&Run) -> bool) {
    let look = |runs: &WatchCache<Run>| runs.get(source).filter(|run| is_shown(&run.value)).map(drop);
    let _ = timeout(VIEW_LAG, runs.wait_for(look)).await;
}
