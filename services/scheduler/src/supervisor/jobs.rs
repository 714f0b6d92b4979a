//! The jobs of a supervisor: each works on one Source, and ends by itself.

mod execute;
mod poll;

use std::sync::Arc;
use std::time::Duration;

use control::{AskedBy, ControlError, Run, RunSpec, SourceSpec, WatchCache};
use model::{RunId, RunMode, SourceId};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::context::SchedulerContext;
use crate::due::{self, was_poll, was_success};
use crate::poll_turns::PollTurns;
use crate::probe::{self, Probe};
use crate::source_line::SourceLine;

pub(super) use execute::run;
pub(super) use poll::poll;

/// Jobs that ask the control store at a time.
const SUBMISSIONS: usize = 64;
/// How long a job waits for the view to show what it wrote: the view follows the server within milliseconds.
const VIEW_LAG: Duration = Duration::from_secs(1);

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
            // Tasks say nothing of when the Source was polled.
            Ok(past) => runs.extend(past.into_iter().filter(|run| !run.is_task())),
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
            task: None,
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

/// Waits until the view shows the run of a Source like this, but not for long.
async fn shown(runs: &mut WatchCache<Run>, source: &SourceId, is_shown: impl Fn(&Run) -> bool) {
    let look = |runs: &WatchCache<Run>| runs.get(source).filter(|run| is_shown(&run.value)).map(drop);
    let _ = timeout(VIEW_LAG, runs.wait_for(look)).await;
}
