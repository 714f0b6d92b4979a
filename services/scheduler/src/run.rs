//! Executes one run of a Source, from its start to its end or until another scheduler must continue it.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogError};
use control::{
    ControlError, DesiredState, InSync, Lease, PollState, Problems, Run, RunFailure, RunState, RunWait,
    SourceSpec, Versioned,
};
use harvest::{Harvest, HarvestError, Parts, Progress, Report, RunObserver as _, cancel};
use model::{Counters, Mode, Phase, RunId};
use planning::HarvestOptions;
use store::{Key, SourceMarker};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use web::{Client, Terms};

use crate::context::SchedulerContext;
use crate::due::{was_poll, was_success};
use crate::meter::Meter;
use crate::notifier::{OutboxWriter, channels};
use crate::origin_permits::CappedPermits;
use crate::places::Place;
use crate::run_retry::{self, RunRetry};
use crate::{pending_actions, run_options};

/// How often progress is reported and the operator's requests are read.
const TELL: Duration = Duration::from_secs(1);
/// How long a run that leaves its place has for the end of its batch. After that it is dropped, and resumed like one
/// whose process died.
const LONGEST_LEAVING: Duration = Duration::from_secs(10);

/// How a run was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunExit {
    /// It is over, or waits for the operator.
    Settled,
    /// Another scheduler owns the Source now.
    Lost,
    /// It waits, and has left its place.
    Parked,
    /// This service stops; the next owner continues.
    Stopping,
    /// The requested transition is not possible now, and is retried after a while.
    Later,
}

/// A run that the Source's owner executes.
pub(crate) struct RunExecutor<'a> {
    context: &'a SchedulerContext,
    lease: &'a Lease,
    /// Cancelled when this scheduler must release the Source.
    keep: &'a CancellationToken,
    place: &'a mut Place,
    source: Versioned<SourceSpec>,
    id: RunId,
    /// Why it waited before, if it did.
    waited: Option<RunWait>,
    /// Since when it is to leave its place to others.
    leaves_since: Option<Instant>,
    progress: watch::Sender<Progress>,
    meter: Meter,
    /// The problems of the Source, once counted.
    problems: Option<Problems>,
    /// The title that discovery proposes, once the run has finished.
    title: Option<String>,
    /// What a poll may compare in place of the next run, once this one has finished.
    poll: Option<PollState>,
    /// Why it is blocked at the moment.
    waits_for: Option<String>,
}

impl<'a> RunExecutor<'a> {
    pub(crate) fn new(
        context: &'a SchedulerContext,
        lease: &'a Lease,
        source: Versioned<SourceSpec>,
        run: &Run,
        keep: &'a CancellationToken,
        place: &'a mut Place,
    ) -> Self {
        let progress = watch::Sender::new(Progress::default());
        let meter = Meter::new(context.metrics.clone(), source.id.clone(), &run.progress.counters);
        Self {
            context,
            lease,
            keep,
            place,
            source,
            id: run.spec.id,
            waited: run.waiting.clone(),
            leaves_since: None,
            progress,
            meter,
            problems: None,
            title: None,
            poll: None,
            waits_for: None,
        }
    }

    /// Executes the run until it is left.
    ///
    /// # Errors
    /// When its status can never be recorded: the run stays as it is, for its next owner.
    pub(crate) async fn tend(mut self, run: &Run) -> Result<RunExit, ControlError> {
        if run.wanted == DesiredState::Cancel
            && let Err(error) = self.cancel().await
        {
            return self.not_given_up(&error).await;
        }
        let started =
            match self.context.control.runs().start(self.lease, self.id, self.context.clock.now()).await {
                // The view of all runs lags a little: this run has ended since. The next check finds its status.
                Err(ControlError::Refused(refused)) => {
                    tracing::debug!(run.id = %self.id, %refused, "the run is no work any more");
                    return Ok(RunExit::Later);
                }
                started => started?,
            };
        if !matches!(started.state, RunState::Running { .. }) {
            return Ok(RunExit::Settled);
        }
        let options = match run_options::options(&self.source, &run.spec) {
            Ok(mut options) => {
                options.channels = channels::open(self.context, &self.source.id);
                with_neighbours(self.context, &self.source, options)
            }
            Err(error) => return self.fail(error.to_string()).await,
        };
        let client = match client(self.context, &options) {
            Ok(client) => client,
            Err(error) => return self.fail(format!("it cannot be asked as it is to be: {error}")).await,
        };
        tracing::info!(run.id = %self.id, "the run begins");
        let _in_hand = self.context.metrics.begin();
        let done_before = done(&run.progress.counters);
        let mut attempt = 0;
        let mut done_at_stop = done_before;
        loop {
            let stop = CancellationToken::new();
            let harvesting = Box::pin(self.harvest(client.clone(), options.clone(), stop.clone()));
            let ended = match self.attend(harvesting, &stop).await? {
                Attended::Ended(ended) => ended,
                Attended::RunExit(left) => return Ok(left),
            };
            let error = match ended {
                Ok(report) => {
                    let left = self.finish(&report).await;
                    self.tell_of_channels(&client, &report, was_poll(run)).await;
                    return left;
                }
                Err(error) => error,
            };
            let now = self.context.clock.now();
            let done = done(&self.progress.borrow().counters);
            attempt = if done > done_at_stop { 1 } else { attempt + 1 };
            done_at_stop = done_at_stop.max(done);
            let waited = self.waited.as_ref().filter(|_| done <= done_before);
            match run_retry::next(&error, attempt, waited, now) {
                RunRetry::Lost => {
                    tracing::warn!(run.id = %self.id, %error, "another scheduler holds the lease: stop");
                    return Ok(RunExit::Lost);
                }
                RunRetry::Stopped if self.leaves_since.is_some() && !self.keep.is_cancelled() => {
                    return self.park(RunWait::turn(self.waited.as_ref(), now)).await;
                }
                RunRetry::Stopped => return self.stopped().await,
                RunRetry::Fail => return self.fail(error.to_string()).await,
                RunRetry::Park(wait) => return self.park(wait).await,
                RunRetry::Again(wait) => {
                    tracing::warn!(run.id = %self.id, %error, again_in_ms = wait.as_millis(), "the run waits");
                    self.waits_for = Some(error.to_string());
                    let waiting = async {
                        tokio::time::sleep(wait).await;
                        Ok::<_, HarvestError>(())
                    };
                    match self.attend(waiting, &CancellationToken::new()).await? {
                        Attended::Ended(_) => {}
                        Attended::RunExit(left) => return Ok(left),
                    }
                    self.waits_for = None;
                }
            }
        }
    }

    /// One harvest, for this run.
    fn harvest(
        &self,
        client: Client,
        options: HarvestOptions,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<Report, HarvestError>> + use<> {
        let context = self.context.clone();
        let source = Arc::clone(&self.source.value);
        let progress = self.progress.clone();
        let catalogs = context.catalogs.clone();
        async move {
            let path = Key::Catalog(source.id.clone()).to_string();
            // Boxed, like the harvest itself: nested futures would overflow the stack of a worker thread.
            let opening = Box::pin(Catalog::open(context.store.object_store(), &path, catalogs));
            let catalog = opening.await?;
            Box::pin(pending_actions::take_up(&context, &source.id, &catalog)).await?;
            let witness = OutboxWriter::of(&context, &source.id);
            let parts = Parts {
                source: source.id.clone(),
                entry: source.entry.clone(),
                catalog,
                store: context.store.clone(),
                view: None,
                client,
                bus: Arc::clone(&context.bus),
                clock: Arc::clone(&context.clock),
                options,
                progress,
                observer: Some(Arc::new(witness)),
                push_lag: context.metrics.lag.clone(),
                stop,
            };
            let harvest = Harvest::open(parts).await?;
            let note = SourceMarker { source: source.id.clone(), url: source.entry.to_string() };
            context.store.note_source(&note).await?;
            Box::pin(harvest.run()).await
        }
    }

    /// Waits for `work`; meanwhile reports progress and reads the operator's requests. Stops the work if the operator
    /// or this service asks for that, or other runs have their turn; drops it if the Source is lost.
    async fn attend<T>(
        &mut self,
        work: impl Future<Output = Result<T, HarvestError>>,
        stop: &CancellationToken,
    ) -> Result<Attended<T>, ControlError> {
        let mut work = std::pin::pin!(work);
        let mut tick = interval(TELL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                // The work in progress is useless now, and the catalog's fence shuts it out.
                () = self.lease.lost().cancelled() => return Ok(Attended::RunExit(RunExit::Lost)),
                ended = &mut work => return Ok(Attended::Ended(ended)),
                _ = tick.tick() => {
                    if !self.tell().await? {
                        stop.cancel();
                    }
                    if self.must_leave(stop) {
                        return Ok(Attended::Ended(Err(HarvestError::Stopped)));
                    }
                }
                () = self.keep.cancelled(), if !stop.is_cancelled() => stop.cancel(),
            }
            if stop.is_cancelled() && self.waits_for.is_some() {
                // No work is in progress that must end first.
                return self.stopped().await.map(Attended::RunExit);
            }
        }
    }

    /// Stops the work if it must leave its place. Returns whether it has not stopped in time, and is dropped: a body
    /// that trickles in must not keep the place.
    fn must_leave(&mut self, stop: &CancellationToken) -> bool {
        let entries = self.progress.borrow().counters.listed;
        if !stop.is_cancelled() && self.place.should_yield(entries) {
            tracing::debug!(run.id = %self.id, entries, "the run leaves its place to others");
            self.leaves_since = Some(Instant::now());
            stop.cancel();
        }
        self.leaves_since.is_some_and(|since| since.elapsed() >= LONGEST_LEAVING)
    }

    /// Leaves the place. The run is taken up when it is due, by whichever scheduler owns the Source then.
    async fn park(&mut self, wait: RunWait) -> Result<RunExit, ControlError> {
        if !self.tell().await? {
            return self.stopped().await;
        }
        tracing::info!(run.id = %self.id, reason = wait.reason.as_str(), until = %wait.until, "the run waits");
        let now = self.context.clock.now();
        self.context.control.runs().park(self.lease, self.id, wait, now).await?;
        Ok(RunExit::Parked)
    }

    /// Reports progress; returns whether the run is still wanted. While the control store is unavailable, it is.
    async fn tell(&self) -> Result<bool, ControlError> {
        let now = self.progress.borrow().clone();
        self.meter.note(&now);
        let progress = control::Progress {
            phase: now.phase,
            counters: now.counters,
            pending: now.phase.map(|_| now.pending),
            waits_for: self.waits_for.clone(),
            told_at: None,
            problems: self.problems,
            title: self.title.clone(),
            poll: self.poll.clone(),
        };
        match self.context.control.runs().tell(self.lease, self.id, progress, self.context.clock.now()).await
        {
            Ok(run) => Ok(run.wanted == DesiredState::Run),
            Err(error) if error.is_temporary() => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// It stopped on request.
    async fn stopped(&self) -> Result<RunExit, ControlError> {
        let wanted = self.context.control.runs().get(self.lease.source()).await?.map(|run| run.wanted);
        if wanted == Some(DesiredState::Cancel)
            && let Err(error) = self.cancel().await
        {
            return self.not_given_up(&error).await;
        }
        self.context.control.runs().let_go(self.lease, self.id, self.context.clock.now()).await?;
        tracing::info!(run.id = %self.id, ?wanted, "the run is let go");
        Ok(if self.keep.is_cancelled() { RunExit::Stopping } else { RunExit::Settled })
    }

    /// Cancelling it failed. The request stays for the next owner of the Source.
    async fn not_given_up(&self, error: &HarvestError) -> Result<RunExit, ControlError> {
        match run_retry::next(error, 1, None, self.context.clock.now()) {
            RunRetry::Lost => Ok(RunExit::Lost),
            RunRetry::Again(_) | RunRetry::Park(_) | RunRetry::Stopped => {
                tracing::warn!(run.id = %self.id, %error, "the run could not be given up yet");
                Ok(RunExit::Later)
            }
            RunRetry::Fail => self.fail(format!("it could not be given up: {error}")).await,
        }
    }

    async fn cancel(&self) -> Result<(), HarvestError> {
        let path = Key::Catalog(self.source.id.clone()).to_string();
        let opened =
            Catalog::open(self.context.store.object_store(), &path, self.context.catalogs.clone()).await;
        let catalog = match opened {
            Err(CatalogError::NotFound { .. }) => return Ok(()),
            opened => opened?,
        };
        // What it has settled stays, and is a change like any other.
        if let Some(run) = catalog.last_run().await?.filter(|run| run.phase != Phase::Finished) {
            OutboxWriter::of(self.context, &self.source.id).observe(&run).await?;
        }
        cancel(&catalog, &*self.context.clock).await?;
        self.context.bus.purge(&self.source.id).await?;
        Ok(catalog.close().await?)
    }

    async fn finish(&mut self, report: &Report) -> Result<RunExit, ControlError> {
        self.problems = Some(Problems { open: report.open_problems, ignored: report.ignored_problems });
        self.title.clone_from(&report.title);
        self.poll = report.poll.clone().map(|basis| PollState {
            basis,
            spec: self.source.run_digest(),
            polled_at: None,
        });
        // The problems, and the final counters, which no tick reported.
        self.tell().await?;
        let now = self.context.clock.now();
        self.context.metrics.problems(&self.source.id, &report.problems_by_reason, report.ignored_problems);
        if let Some(guard) = &report.guard {
            self.context.metrics.guard_tripped();
            return self.stop(RunFailure::by_guard(guard.to_string())).await;
        }
        let in_sync = InSync(report.in_sync());
        let finished = self.context.control.runs().finish(self.lease, self.id, in_sync, now).await?;
        if was_success(&finished) {
            let began = finished.started_at;
            self.context.metrics.statuses.note(&self.source.id, |status| status.last_success = began);
        }
        // The counters of an audit or an earlier process cannot be compared with the results.
        if !report.resumed && matches!(report.run.mode, Mode::Baseline | Mode::Incremental) {
            self.context.metrics.fell_short(report.run.counters.shortfall());
        }
        tracing::info!(run.id = %self.id, in_sync = report.in_sync(), "the run is finished");
        self.context.metrics.ended(if report.in_sync() { "in-sync" } else { "with-problems" });
        Ok(RunExit::Settled)
    }

    /// Reports the channels that the run found, as long as this scheduler owns the Source: the next owner's run finds
    /// the same.
    async fn tell_of_channels(&self, client: &Client, report: &Report, is_poll: bool) {
        let telling = async {
            channels::missed(self.context, &self.source.id, &report.missed).await;
            // No other run reports these missed changes. The request for channels makes requests to the Source; it
            // may be cut short, because a later run repeats it.
            tokio::select! {
                () = channels::want(self.context, client, &self.source, &report.channels, is_poll) => {}
                () = self.keep.cancelled() => {}
            }
        };
        tokio::select! {
            () = telling => {}
            () = self.lease.lost().cancelled() => {}
        }
    }

    async fn fail(&self, why: String) -> Result<RunExit, ControlError> {
        self.stop(RunFailure::because(why)).await
    }

    async fn stop(&self, stopped: RunFailure) -> Result<RunExit, ControlError> {
        tracing::error!(run.id = %self.id, why = stopped.why, by_guard = stopped.by_guard, "the run cannot go on");
        self.context.metrics.ended("failed");
        self.context.control.runs().fail(self.lease, self.id, stopped, self.context.clock.now()).await?;
        Ok(RunExit::Settled)
    }
}

/// The same terms, with the rate of the strictest Source at this origin and the fleet's limits, and within this
/// scheduler's limits.
pub(crate) fn with_neighbours(
    context: &SchedulerContext,
    source: &SourceSpec,
    mut options: HarvestOptions,
) -> HarvestOptions {
    options.window.origins = context.settings.max_open_origins;
    options.limits = context.settings.limits;
    options.terms.requests_per_second = run_options::strictest_rate(source, &context.sources);
    options
}

/// The client for a Source's documents: each request takes a permit of its origin in the whole fleet.
pub(crate) fn client(context: &SchedulerContext, options: &HarvestOptions) -> anyhow::Result<Client> {
    let places = CappedPermits { places: Arc::clone(&context.permits), limit: options.jobs_per_origin };
    let terms = context.credentials.terms(&options.terms)?;
    Ok(context.client.on(Terms { places: Some(Arc::new(places)), ..terms })?)
}

/// What a run has done: any of it is progress.
fn done(counters: &Counters) -> u64 {
    counters.listed + counters.stored + counters.unchanged + counters.deleted
}

/// How the awaited future ended.
enum Attended<T> {
    Ended(Result<T, HarvestError>),
    RunExit(RunExit),
}
