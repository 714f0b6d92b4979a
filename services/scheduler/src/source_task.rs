//! Looks after one assigned Source: a lease while there is work, and next to nothing in between.

use std::sync::Arc;
use std::time::Duration;

use bus::{BusError, Filter};
use control::{AskedBy, Claim, ControlError, Hint, Lease, Run, RunSpec, SourceSpec, SubscriptionState};
use jiff::Timestamp;
use model::{RunId, RunMode, SourceId};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::context::SchedulerContext;
use crate::due::{self, Due, was_poll, was_success};
use crate::hints;
use crate::run::{RunExecutor, RunExit};

/// Wait after the control store could not be read or written.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
/// How long a check for hub deliveries waits for one.
const LOOK_FOR_NOTICES: Duration = Duration::from_secs(30);
/// Minimum time between two checks for changes. Each of thousands of active runs is written once a second, and every
/// source task receives that. If each checked each time, a scheduler's checks would grow with the square of its Sources.
/// A change is checked at once if there was none shortly before.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Looks after a Source until `keep` is cancelled: then another scheduler owns it, or this service stops.
pub(crate) async fn source_task(context: SchedulerContext, source: SourceId, keep: CancellationToken) {
    let polled_at = context.clock.now();
    let mut task =
        SourceTask { context, source, keep, pause: None, polled_at, looked_at: None, fruitless: 0 };
    task.look_back().await;
    while !task.keep.is_cancelled() {
        if let Err(error) = task.turn().await {
            tracing::warn!(source.id = %task.source, %error, "a Source cannot be looked after now");
            task.recover().await;
        }
    }
    // The next owner counts them.
    task.context.metrics.forget(&task.source);
}

struct SourceTask {
    context: SchedulerContext,
    source: SourceId,
    keep: CancellationToken,
    /// Pause before the last run of a continuously followed Source.
    pause: Option<Duration>,
    /// Time of the last poll without a hub's notification, if known.
    polled_at: Timestamp,
    /// End of the last run that a hub's notification had not started, if known.
    looked_at: Option<Timestamp>,
    /// Consecutive runs that hints started and that found no change, if known.
    fruitless: u32,
}

impl SourceTask {
    /// Restores from past runs when the Source was last in sync, for the metrics, and when it was last polled without
    /// a hub's notification.
    async fn look_back(&mut self) {
        let now = self.context.clock.now();
        let mut runs: Vec<Run> =
            self.context.runs.get(&self.source).map(|run| run.value.as_ref().clone()).into_iter().collect();
        if !runs.is_empty() && !runs.iter().all(|run| was_success(run) && was_poll(run)) {
            match self.context.control.runs().past(&self.source).await {
                Ok(past) => runs.extend(past),
                Err(error) => {
                    tracing::debug!(source.id = %self.source, %error, "it is not known when it was in step last");
                }
            }
        }
        let last_success = runs.iter().find(|run| was_success(run)).and_then(|run| run.started_at);
        let last_poll = runs.iter().find(|run| was_poll(run)).and_then(|run| run.started_at);
        self.polled_at = last_poll.unwrap_or(self.polled_at);
        self.looked_at = runs.iter().find_map(|run| due::looked_at(Some(run), None));
        self.fruitless = due::fruitless(&runs);
        self.context.metrics.statuses.note(&self.source, |status| {
            (status.since, status.last_success) = (Some(now), last_success);
        });
    }

    /// Waits for work, and does it.
    async fn turn(&mut self) -> Result<(), ControlError> {
        let wait = self.wait_for_run();
        let Some((spec, run)) = wait.await? else { return Ok(()) };
        let Some(lease) = self.acquire().await? else { return Ok(()) };
        self.context.metrics.lease("acquired");
        if let Err(error) = hints::take_up(&self.context, &self.source, &run).await {
            tracing::warn!(source.id = %self.source, %error, "a hint cannot be taken up now: there will be a run more");
        }
        let tended = RunExecutor::new(&self.context, &lease, spec, &run, &self.keep).tend(&run).await;
        self.context.metrics.lease(if lease.lost().is_cancelled() { "lost" } else { "released" });
        // Whatever the result: others may own the Source now.
        lease.release().await;
        match tended? {
            RunExit::Settled => {
                let now = self.context.clock.now();
                if was_poll(&run) {
                    self.polled_at = now;
                }
                if run.spec.asked_by != AskedBy::Notification {
                    self.looked_at = Some(now);
                }
                self.note_pace().await
            }
            RunExit::Stopping => Ok(()),
            // The run still needs work. Without a pause it would be retried at once, and for ever.
            RunExit::Lost | RunExit::Later => {
                self.recover().await;
                Ok(())
            }
        }
    }

    /// Waits a little, unless the source task stops.
    async fn recover(&self) {
        tokio::select! {
            () = tokio::time::sleep(AFTER_TROUBLE) => {}
            () = self.keep.cancelled() => {}
        }
    }

    /// The Source's run, as soon as one needs work; submits one when the Source is due. None if this scheduler must
    /// release the Source.
    async fn wait_for_run(&self) -> Result<Option<(Arc<SourceSpec>, Arc<Run>)>, ControlError> {
        let mut sources = self.context.sources.clone();
        let mut runs = self.context.runs.clone();
        let mut hinted = self.context.hints.clone();
        loop {
            let next_look = Instant::now() + BETWEEN_LOOKS;
            // Before the check, so that no later change is missed.
            sources.mark_seen();
            runs.mark_seen();
            hinted.mark_seen();
            let spec = sources.get(&self.source);
            let last = runs.get(&self.source);
            let (due, asked_by) = match (&spec, &last) {
                // A removed Source begins no further run; a run in progress waits for the operator's request.
                (None, _) => (Due::Never, AskedBy::Schedule),
                (Some(spec), Some(run)) if run.wants_work() => {
                    return Ok(Some((Arc::clone(&spec.value), Arc::clone(&run.value))));
                }
                (Some(_), Some(run)) if !run.state.is_over() => (Due::Never, AskedBy::Schedule),
                (Some(spec), last) => {
                    let last = last.as_ref().map(|run| &*run.value);
                    self.due(spec, last, hinted.get(&self.source).as_ref().map(|hint| &*hint.value))
                }
            };
            let wait = match due {
                Due::Now => {
                    self.submit(asked_by).await?;
                    continue_after_submission(&mut runs, &self.source).await;
                    continue;
                }
                Due::In(wait) => wait,
                Due::Never => Duration::MAX,
            };
            let changed = async {
                tokio::select! {
                    () = sources.changed() => {}
                    () = runs.changed() => {}
                    () = hinted.changed() => {}
                }
                sleep_until(next_look).await;
            };
            let held_back = due::held_back(
                last.as_ref().map(|run| &*run.value),
                self.context.settings.hint_pause(),
                self.context.clock.now(),
            );
            let may_run = spec.as_ref().is_some_and(|spec| spec.enabled)
                && last.as_ref().is_none_or(|run| run.state.is_over());
            tokio::select! {
                () = changed => {}
                () = self.notified(held_back), if may_run => {
                    self.submit(AskedBy::Notification).await?;
                    continue_after_submission(&mut runs, &self.source).await;
                }
                () = sleep_up_to(wait) => {}
                () = self.keep.cancelled() => return Ok(None),
            }
        }
    }

    /// When the next run of the Source is due after its last run is over, and what causes it.
    fn due(&self, spec: &SourceSpec, last: Option<&Run>, hint: Option<&Hint>) -> (Due, AskedBy) {
        let now = self.context.clock.now();
        let every = self.context.push.as_ref().and_then(|_| self.context.settings.backup_poll());
        let due = due::due(spec, last, self.pause, now).or_sooner(due::backup(
            spec,
            self.polled_at,
            every,
            || self.is_subscribed(),
            now,
        ));
        let hinted = match hint {
            Some(hint) => {
                let looked_at = due::looked_at(last, self.looked_at);
                due::hinted(spec, looked_at, self.hint_pause(hint), now)
            }
            None => Due::Never,
        };
        let asked_by = if due == Due::Now { AskedBy::Schedule } else { AskedBy::Hint };
        (due.or_sooner(hinted), asked_by)
    }

    /// Pause after a run before this hint starts the next.
    fn hint_pause(&self, hint: &Hint) -> Duration {
        let settings = &self.context.settings;
        if hint.unproved {
            due::unproved_pause(settings.hint_pause(), settings.hint_pause_most(), self.fruitless)
        } else {
            settings.hint_pause()
        }
    }

    /// Whether the Source is subscribed to, in any state.
    fn is_subscribed(&self) -> bool {
        self.context
            .subscriptions
            .any(|one| one.source == self.source && one.state != SubscriptionState::Ending)
    }

    /// Waits until a hub has delivered a notification, if the Source has a subscription; does not check before
    /// `held_back` is over. The delivery stays in the queue: the run that it starts takes it.
    async fn notified(&self, held_back: Duration) {
        tokio::time::sleep(held_back).await;
        let mut subscriptions = self.context.subscriptions.clone();
        loop {
            subscriptions.mark_seen();
            if !subscriptions.any(|one| one.source == self.source) {
                subscriptions.changed().await;
                sleep_until(Instant::now() + BETWEEN_LOOKS).await;
                continue;
            }
            match self.look_for_notices().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(source.id = %self.source, %error, "what hubs deliver cannot be looked for");
                    tokio::time::sleep(AFTER_TROUBLE).await;
                }
            }
        }
    }

    async fn look_for_notices(&self) -> Result<bool, BusError> {
        let filter = Filter::Notices(self.source.clone());
        match self.context.bus.pull(&filter, 1, LOOK_FOR_NOTICES).await {
            Err(BusError::NotOpen { .. }) => {
                self.context.bus.open(harvest::notification_consumer(filter)).await?;
                Ok(false)
            }
            // Dropped without acknowledgement, it is delivered again at once.
            found => Ok(!found?.is_empty()),
        }
    }

    /// Submits the run that is due.
    async fn submit(&self, asked_by: AskedBy) -> Result<(), ControlError> {
        let spec = RunSpec {
            id: RunId::fresh(),
            source: self.source.clone(),
            mode: RunMode::Auto,
            asked_by,
            asked_at: self.context.clock.now(),
            allow_deletes: false,
            repair: false,
        };
        match self.context.control.runs().submit(spec).await {
            // The operator was quicker.
            Ok(_) | Err(ControlError::Exists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The lease of the Source, as soon as no other scheduler has it. None if this scheduler must release the Source.
    async fn acquire(&self) -> Result<Option<Lease>, ControlError> {
        let mut leases = self.context.leases.clone();
        loop {
            let now = self.context.clock.now();
            let held =
                match self.context.control.leases().acquire(&self.source, &self.context.me, now).await? {
                    Claim::Taken(lease) => return Ok(Some(lease)),
                    Claim::Held(record) => record,
                };
            tracing::debug!(source.id = %self.source, holder = %held.holder, "waiting for the lease");
            // All leases are renewed constantly; only this one matters, and reading it is a request. The view may not
            // show its present holder yet, hence the pause.
            let ended = async {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                leases.wait_for(|leases| leases.get(&self.source).is_none().then_some(())).await;
            };
            tokio::select! {
                () = ended => {}
                // The event of its end may have been missed.
                () = tokio::time::sleep(AFTER_TROUBLE) => {}
                () = self.keep.cancelled() => return Ok(None),
            }
        }
    }

    /// After a run: sets the pause of a continuously followed Source.
    async fn note_pace(&mut self) -> Result<(), ControlError> {
        let Some(spec) = self.context.sources.get(&self.source) else { return Ok(()) };
        let Some(run) = self.context.control.runs().get(&self.source).await? else { return Ok(()) };
        let counters = &run.progress.counters;
        let found = counters.stored + counters.deleted;
        if run.spec.asked_by == AskedBy::Hint {
            self.fruitless = if due::brought_something(&run) { 0 } else { self.fruitless.saturating_add(1) };
        }
        self.pause = spec.follow.map(|bounds| bounds.next_pause(self.pause, found));
        Ok(())
    }
}

/// Waits for a run that was just submitted: the view follows the server within milliseconds.
async fn continue_after_submission(runs: &mut control::WatchCache<Run>, source: &SourceId) {
    let seen =
        |runs: &control::WatchCache<Run>| runs.get(source).filter(|run| !run.state.is_over()).map(drop);
    let _ = tokio::time::timeout(AFTER_TROUBLE, runs.wait_for(seen)).await;
}

/// Sleeps at most an hour, so that clock jumps are noticed.
async fn sleep_up_to(wait: Duration) {
    tokio::time::sleep(wait.min(Duration::from_secs(3_600))).await;
}
