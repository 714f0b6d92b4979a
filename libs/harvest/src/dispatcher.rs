//! Dispatch: sends pending records as jobs, a bounded window at a time, until none is left.

pub(crate) mod dead_letters;
mod patches;
mod pending_pass;
pub(crate) mod window;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bus::{Delivery, Queue};
use jiff::Timestamp;
use model::{
    Action, Failure, FetchItem, FetchJob, Fetched, JobId, Origin, Outcome, OutcomeResult, Outcomes,
    PendingRecord, ProblemReason, ResourceUri, VerifyJob,
};

use crate::dispatcher::patches::PatchStreak;
use crate::dispatcher::pending_pass::PendingPass;
use crate::dispatcher::window::Window;
use crate::error::HarvestError;
use crate::run::RunContext;
use crate::run::job_events::{JobEvents, take_dead_letters};
use crate::settler::Settler;
use crate::settler::candidate::{self, Step, next_step};
use crate::settler::failures::{Down, earliest};

/// Deletions settled per batch.
const DELETE_BATCH: usize = 500;
/// Pending records that are read before their jobs go out.
const PORTION: usize = 256;

/// Works off pending records: a window of them is out in jobs.
pub(crate) struct Dispatcher {
    pub(crate) window: Window,
    events: JobEvents,
    patches: PatchStreak,
}

/// What a pass over the pending records left.
#[derive(Debug, Default, Clone, Copy)]
struct Leftover {
    /// Whether a record was left for another pass.
    any: bool,
    /// The earliest time at which a postponed record is due.
    due: Option<Timestamp>,
}

impl Dispatcher {
    /// Works off all pending records. Ends when none is left, or when no origin with work can be reached. `wait` is how
    /// long the Source took to answer for its documents, if any was requested.
    ///
    /// # Errors
    /// When the Source's own origin cannot be reached, the harvest is stopped, or a service fails.
    pub(crate) async fn run(
        ctx: &mut RunContext,
        settler: &mut Settler,
        wait: Option<Duration>,
    ) -> Result<(), HarvestError> {
        if !ctx.is_anything_planned() {
            return Ok(());
        }
        settler.begin_dispatch(ctx);
        ctx.open_queues().await?;
        let jobs_per_origin = ctx.options.jobs_per_origin.get();
        let window =
            Window::within(ctx.options.window, jobs_per_origin, ctx.run.counters.planned).expecting(wait);
        let events = JobEvents::of(ctx);
        let mut dispatcher = Self { window, events, patches: PatchStreak::default() };
        dispatcher.settle_earlier_dead_letters(ctx).await?;
        loop {
            let left = dispatcher.pass(ctx, settler).await?;
            let down = dispatcher.window.take_down();
            let is_any_down = !down.is_empty();
            if settler.leave(ctx, &down).await? {
                keep_resting(&mut dispatcher.window, &down);
            }
            settler.acknowledge(ctx).await?;
            match left.due {
                _ if is_any_down => {}
                _ if !left.any => break,
                Some(due) => ctx.wait_until(due).await?,
                None => {}
            }
        }
        ctx.progress.show_jobs(0, (0, 0));
        ctx.close_queues(dispatcher.window.into_origins()).await;
        settler.end_dispatch();
        ctx.note_nothing_pending();
        Ok(())
    }

    /// Settles the dead letters of jobs that an earlier process sent. A short run may never poll for them again.
    async fn settle_earlier_dead_letters(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        loop {
            let letters = take_dead_letters(ctx).await?;
            if letters.is_empty() {
                return Ok(());
            }
            self.settle_dead_letters(ctx, letters).await?;
        }
    }

    /// Scans the pending records once and settles the outcomes.
    async fn pass(&mut self, ctx: &mut RunContext, settler: &mut Settler) -> Result<Leftover, HarvestError> {
        let mut pass = PendingPass::over(&*ctx.catalog().await?).await?;
        let mut left = Leftover::default();
        loop {
            ctx.check_stop()?;
            left.any |= self.window.shed_down();
            for mirror in settler.trials.left_out() {
                left.any |= self.window.shed_mirrored(mirror);
            }
            self.fill(ctx, settler, &mut pass, &mut left).await?;
            let has_more = !pass.is_over() && self.window.has_room();
            if !has_more || pass.deletions.len() >= DELETE_BATCH {
                let deletions = std::mem::take(&mut pass.deletions);
                settler.settle_deletions(ctx, deletions).await?;
            }
            if !has_more || pass.misplaced.len() >= DELETE_BATCH {
                let misplaced = std::mem::take(&mut pass.misplaced);
                settler.pass_on(ctx, misplaced).await?;
            }
            let is_last = pass.is_over();
            self.send_ready(ctx, is_last).await?;
            ctx.progress.show_jobs(self.window.in_flight(), self.window.jobs());
            // The jobs that went out may have made room.
            if !is_last && self.window.has_room() {
                continue;
            }
            if self.window.is_idle() {
                if pass.is_over() {
                    return Ok(left);
                }
                // No job is out, so no outcome will come: read on.
                continue;
            }
            // No slot waits for what is settled, if all that is left is out.
            let last = if is_last && self.window.is_all_out() { self.window.jobs_out() } else { 0 };
            self.settle_next(ctx, settler, &mut left, last).await?;
        }
    }

    /// Waits for what comes back from the jobs, and settles it. `last` is the number of the last jobs, if all are out.
    async fn settle_next(
        &mut self,
        ctx: &mut RunContext,
        settler: &mut Settler,
        left: &mut Leftover,
        last: usize,
    ) -> Result<(), HarvestError> {
        let event = self.events.next(ctx, last).await?;
        if event.is_quiet() {
            settler.acknowledge(ctx).await?;
            let origins = self.window.origins_out();
            if self.events.are_lost(ctx, &origins, self.window.jobs_out()).await? {
                self.window.forget_jobs();
                left.any = true;
            }
            return Ok(());
        }
        self.settle_resources(ctx, settler, event.resources, left).await?;
        for (delivery, _) in event.packages {
            // The package was settled meanwhile, or its record has the remaining work.
            delivery.ack().await?;
        }
        self.settle_dead_letters(ctx, event.dead_letters).await
    }

    /// Settles outcomes of jobs on resources. They say something about their origins, too.
    async fn settle_resources(
        &mut self,
        ctx: &mut RunContext,
        settler: &mut Settler,
        messages: Vec<(Delivery, Outcomes)>,
        left: &mut Leftover,
    ) -> Result<(), HarvestError> {
        let mut ended = Vec::with_capacity(messages.len());
        for (_, outcomes) in &messages {
            let attempted = outcomes.items.iter().filter(|outcome| was_attempted(outcome));
            let count = attempted.clone().count();
            if self.window.asks(outcomes.id) {
                attempted.for_each(|one| self.window.reached(&outcomes.origin, was_answered(&one.result)));
            }
            outcomes.items.iter().for_each(|one| self.patches.note(one.patch.as_deref()));
            ended.push((outcomes.id, outcomes.elapsed_ms, count));
        }
        let follow_up = settler.settle(ctx, messages, |uri| self.window.take_plan(uri)).await?;
        for (job, elapsed_ms, attempted) in ended {
            self.window.job_done(job, elapsed_ms, attempted);
        }
        for (origin, until) in &follow_up.resting {
            self.window.rest(origin, *until);
        }
        left.any |= follow_up.any;
        left.due = earliest(left.due, follow_up.due);
        Ok(())
    }

    /// Reads pending records into the window, until it is full or they end.
    async fn fill(
        &mut self,
        ctx: &mut RunContext,
        settler: &Settler,
        pass: &mut PendingPass,
        left: &mut Leftover,
    ) -> Result<(), HarvestError> {
        let now = ctx.clock.now();
        for _ in 0..PORTION {
            let is_batch_full = pass.deletions.len().max(pass.misplaced.len()) >= DELETE_BATCH;
            if !self.window.has_room() || is_batch_full {
                break;
            }
            let Some((uri, record)) = pass.next().await? else { return Ok(()) };
            if self.window.holds(&uri) {
                continue;
            }
            if let Some(next) = record.next_attempt_at.filter(|next| *next > now) {
                left.any = true;
                if let Action::Fetch { origin } = &record.action
                    && is_beyond_patience(ctx, now, next)
                {
                    self.window.rest(origin, next);
                    continue;
                }
                left.due = earliest(left.due, Some(next));
                continue;
            }
            match record.action.clone() {
                Action::Delete => pass.deletions.push((uri, record)),
                Action::Fetch { origin } => match next_step(&record) {
                    // A candidate needs no request, so it does not matter whether its origin is skipped.
                    Step::Judge(kept) => {
                        self.window.add_candidate(origin, candidate::kept(uri, &record, kept), record);
                    }
                    Step::Fetch | Step::Confirm(_) if self.window.is_down(&origin) => left.any = true,
                    _ if record.at_mirror().is_some() && settler.trials.is_left_out(&origin) => {
                        left.any = true;
                        pass.misplaced.push((uri, record));
                    }
                    _ if is_on_trial(settler, pass, &origin, &record) => left.any = true,
                    step => {
                        let from = record.at_mirror().map(|mirror| mirror.url.clone());
                        let held = match step {
                            // What the resource's own server gave means nothing to a mirror.
                            Step::Confirm(kept) if from.is_none() => kept.validators.clone(),
                            Step::Fetch | Step::Confirm(_) | Step::Judge(_) => Default::default(),
                        };
                        let seq = record.seq;
                        let listed_until = record.listing.latest;
                        let declaration = record.declaration.clone();
                        let repair = record.repair;
                        // Only at its own URI: a mirror is asked because that failed.
                        let is_patchable = matches!(step, Step::Fetch) && from.is_none();
                        let patch = record.patch.as_deref().filter(|_| is_patchable);
                        let patch = patch.map(|plan| Box::new(patches::item(plan)));
                        self.window.add(
                            origin,
                            FetchItem {
                                uri,
                                seq,
                                declaration,
                                listed_until,
                                held,
                                repair,
                                held_type: None,
                                from,
                                patch,
                            },
                            record,
                        );
                    }
                },
            }
        }
        Ok(())
    }

    /// Sends all jobs that may go out. If more origins wait than may have a queue, idle origins give up their queues.
    async fn send_ready(&mut self, ctx: &mut RunContext, is_last: bool) -> Result<(), HarvestError> {
        while let Some((id, origin, items)) = self.window.next_candidates(is_last) {
            send_candidates(ctx, id, origin, items).await?;
            self.events.note_sent();
        }
        loop {
            while let Some((id, origin, items)) = self.window.next_job(is_last) {
                let source = ctx.source.clone();
                let terms = ctx.options.terms.clone();
                let job = FetchJob { id, source, run: ctx.run.id, origin, terms, items };
                send(ctx, job, &self.patches).await?;
                self.events.note_sent();
            }
            let idle = self.window.take_idle_origins();
            if idle.is_empty() {
                return Ok(());
            }
            self.window.keep_open(ctx.close_origins(idle).await);
        }
    }
}

async fn send(ctx: &mut RunContext, mut job: FetchJob, patches: &PatchStreak) -> Result<(), HarvestError> {
    add_validators(ctx, &mut job.items).await?;
    patches.prepare(ctx, &mut job.items).await?;
    ctx.queue_job(job).await
}

/// Sends candidates to the verifier, like fetched bitstreams.
async fn send_candidates(
    ctx: &RunContext,
    id: JobId,
    origin: Origin,
    items: Vec<Fetched>,
) -> Result<(), HarvestError> {
    let source = ctx.source.clone();
    let run = ctx.run.id;
    let (requests, elapsed_ms, put) = (0, 0, Vec::new());
    let job = VerifyJob { id, source, run, origin, items, requests, elapsed_ms, put };
    let queue = Queue::Verify { source: job.source.clone() };
    bus::send(&*ctx.bus, queue, id, Arc::new(job)).await?;
    Ok(())
}

/// Adds the server's validators of the stored version, if the Source declares nothing that tells versions apart.
/// Not if the stored bytes are unreliable: "not modified" would be of no use then. The stored media type helps to
/// tell a bot-defence page from content.
async fn add_validators(ctx: &mut RunContext, items: &mut [FetchItem]) -> Result<(), HarvestError> {
    let bare: Vec<usize> = (0..items.len()).filter(|&n| items[n].declaration.digests.is_empty()).collect();
    let uris: Vec<ResourceUri> = bare.iter().map(|&n| items[n].uri.clone()).collect();
    for (n, record) in bare.into_iter().zip(ctx.records_of(&uris).await?) {
        let Some(bitstream) = record.and_then(|record| record.bitstream) else { continue };
        let item = &mut items[n];
        if !item.repair && item.held.is_empty() && item.from.is_none() {
            item.held = bitstream.validators;
        }
        item.held_type = bitstream.media_type;
    }
    Ok(())
}

/// Lets origins rest on that asked for it, while mirrors are requested.
fn keep_resting(window: &mut Window, down: &HashMap<Origin, Down>) {
    for (origin, why) in down {
        if let Down::Resting { until } = why {
            window.rest(origin, *until);
        }
    }
}

/// Whether a record waits for what a mirror gives for other resources. Nothing is known of the mirror yet.
fn is_on_trial(settler: &Settler, pass: &mut PendingPass, mirror: &Origin, record: &PendingRecord) -> bool {
    let is_at_mirror = record.at_mirror().is_some() && !record.is_at_memento();
    let most = settler.trials.most_at(mirror).filter(|_| is_at_mirror);
    most.is_some_and(|most| !pass.may_try(mirror, most))
}

/// Whether a time lies further ahead than a run waits.
fn is_beyond_patience(ctx: &RunContext, now: Timestamp, due: Timestamp) -> bool {
    Duration::try_from(due.duration_since(now)).is_ok_and(|wait| wait > ctx.options.retries.longest_wait)
}

fn was_attempted(outcome: &Outcome) -> bool {
    !matches!(outcome.result, OutcomeResult::Deferred)
}

/// Whether a server answered, with any status.
fn was_answered(result: &OutcomeResult) -> bool {
    use ProblemReason::{Connect, Dns, Timeout, Tls};
    !matches!(result, OutcomeResult::Failed(Failure { reason: Dns | Connect | Tls | Timeout, .. }))
}
