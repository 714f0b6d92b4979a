//! Dispatch: sends pending records as jobs, a bounded window at a time, until none is left.

mod incoming;
mod pass;

use std::sync::Arc;
use std::time::Duration;

use bus::Queue;
use jiff::Timestamp;
use model::{Action, FetchItem, FetchJob, Fetched, JobId, Lane, ResourceUri, VerifyJob};
use tokio::time::Instant;

use crate::candidate::{self, Step, next_step};
use crate::error::HarvestError;
use crate::fresh::Fresh;
use crate::harvest::Harvest;
use crate::pending_bound::PendingBound;
use crate::store_health;
use crate::window::Window;
use incoming::Incoming;
use pass::Pass;

/// Deletions settled per batch.
const DELETE_BATCH: usize = 500;
/// Pending records that are read before their jobs go out.
const PORTION: usize = 256;
/// How often dead letters are polled while outcomes come. If no outcomes come, they are polled every time.
const LETTERS_EVERY: Duration = Duration::from_secs(5);

impl Harvest {
    /// Works off all pending records. Ends when none is left, or when no origin with work can be reached.
    pub(crate) async fn dispatch(&mut self) -> Result<(), HarvestError> {
        if !self.reach.is_anything_planned() {
            return Ok(());
        }
        self.is_bare = self.catalog.holds_no_resource().await?;
        self.open_queues().await?;
        let (jobs_per_lane, planned) = (self.options.jobs_per_lane.get(), self.run.counters.planned);
        let mut window = Window::within(self.options.window, jobs_per_lane, planned);
        // Dead letters of jobs that an earlier process sent.
        self.take_letters(&mut window).await?;
        loop {
            let (due, left) = self.pass(&mut window).await?;
            let down = window.take_down();
            let any_down = !down.is_empty();
            self.leave(down).await?;
            match due {
                _ if any_down => {}
                _ if !left => break,
                Some(due) => self.wait_until(due).await?,
                None => {}
            }
        }
        self.progress.send_modify(|progress| (progress.in_flight, progress.window) = (0, (0, 0)));
        self.close_queues(window.into_lanes()).await;
        (self.reach, self.is_bare) = (PendingBound::Nowhere, false);
        self.fresh = Fresh::since(self.catalog.pending_written());
        Ok(())
    }

    /// Scans the pending records once and settles the outcomes. Returns when the next record is due, and whether any
    /// is left.
    async fn pass(&mut self, window: &mut Window) -> Result<(Option<Timestamp>, bool), HarvestError> {
        let mut pass = Pass::over(&self.catalog, &mut self.fresh).await?;
        let mut incoming = Incoming::of(self.source.clone());
        loop {
            self.check_stop()?;
            pass.left |= window.shed_down();
            self.fill(window, &mut pass).await?;
            let has_more = !pass.is_over() && window.has_room();
            if !has_more || pass.deletions.len() >= DELETE_BATCH {
                let deletions = std::mem::take(&mut pass.deletions);
                self.settle_deletions(deletions).await?;
            }
            let last = pass.is_over();
            self.send_ready(window, &mut pass, last).await?;
            self.progress.send_modify(|progress| {
                (progress.in_flight, progress.window) = (window.in_flight(), window.jobs());
            });
            // The jobs that went out may have made room.
            if !last && window.has_room() {
                continue;
            }
            if window.is_idle() {
                if pass.is_over() {
                    return Ok((pass.due, pass.left));
                }
                // No job is out, so no outcome will come: read on.
                continue;
            }
            let deliveries = tokio::select! {
                deliveries = incoming.next(&*self.bus) => deliveries?,
                trouble = store_health::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
                () = self.stop.cancelled() => return Err(HarvestError::Stopped),
            };
            let mut quiet = deliveries.is_empty();
            let again = self.settle(deliveries, window).await?;
            if quiet || pass.letters_at.elapsed() >= LETTERS_EVERY {
                pass.letters_at = Instant::now();
                quiet &= !self.take_letters(window).await?;
            }
            if quiet {
                pass.left |= self.look_for_lost(window, &mut pass.heard_at).await?;
            } else {
                (pass.heard_at, self.vanished) = (Instant::now(), 0);
            }
            for (lane, until) in &again.resting {
                window.rest(lane, *until);
            }
            pass.left |= again.any;
            pass.due = earliest(pass.due, again.due);
        }
    }

    /// Reads pending records into the window, until it is full or they end.
    async fn fill(&mut self, window: &mut Window, pass: &mut Pass) -> Result<(), HarvestError> {
        let now = self.clock.now();
        for _ in 0..PORTION {
            if !window.has_room() || pass.deletions.len() >= DELETE_BATCH {
                break;
            }
            let Some((uri, record)) = pass.next().await? else { return Ok(()) };
            if window.holds(&uri) {
                continue;
            }
            if let Some(next) = record.next_attempt_at.filter(|next| *next > now) {
                pass.left = true;
                if let Action::Fetch { lane } = &record.action
                    && self.is_beyond_patience(now, next)
                {
                    window.rest(lane, next);
                    continue;
                }
                pass.due = earliest(pass.due, Some(next));
                continue;
            }
            match record.action.clone() {
                Action::Delete => pass.deletions.push((uri, record)),
                Action::Fetch { lane } => match next_step(&record) {
                    // A candidate needs no request, so it does not matter whether its origin is skipped.
                    Step::Judge(kept) => {
                        window.add_candidate(lane, candidate::kept(uri, &record, kept), record);
                    }
                    Step::Fetch | Step::Confirm(_) if window.is_down(&lane) => pass.left = true,
                    step => {
                        let held = match step {
                            Step::Confirm(kept) => kept.validators.clone(),
                            Step::Fetch | Step::Judge(_) => Default::default(),
                        };
                        let (seq, listed_until) = (record.seq, record.listing.latest);
                        let (declaration, mend) = (record.declaration.clone(), record.mend);
                        window.add(
                            lane,
                            FetchItem { uri, seq, declaration, listed_until, held, mend, held_type: None },
                            record,
                        );
                    }
                },
            }
        }
        Ok(())
    }

    /// Sends all jobs that may go out. If more origins wait than may have a queue, idle origins give up their queues.
    async fn send_ready(
        &mut self,
        window: &mut Window,
        pass: &mut Pass,
        last: bool,
    ) -> Result<(), HarvestError> {
        while let Some((id, lane, items)) = window.next_candidates(last) {
            self.send_candidates(id, lane, items).await?;
            pass.heard_at = Instant::now();
        }
        loop {
            while let Some((id, lane, items)) = window.next_job(last) {
                let (source, terms) = (self.source.clone(), self.options.terms.clone());
                self.send(FetchJob { id, source, run: self.run.id, lane, terms, items }).await?;
                pass.heard_at = Instant::now();
            }
            let idle = window.take_idle_lanes();
            if idle.is_empty() {
                return Ok(());
            }
            window.keep_open(self.close_lanes(idle).await);
        }
    }

    async fn send(&self, mut job: FetchJob) -> Result<(), HarvestError> {
        self.add_validators(&mut job.items).await?;
        self.queue_job(job).await
    }

    /// Sends candidates to the verifier, like fetched bitstreams.
    async fn send_candidates(&self, id: JobId, lane: Lane, items: Vec<Fetched>) -> Result<(), HarvestError> {
        let (source, run) = (self.source.clone(), self.run.id);
        let job = VerifyJob { id, source, run, lane, items, requests: 0, elapsed_ms: 0 };
        let queue = Queue::Verify { source: job.source.clone() };
        bus::send(&*self.bus, queue, id, Arc::new(job)).await?;
        Ok(())
    }

    /// Adds the server's validators of the stored version, if the Source declares nothing that tells versions apart.
    /// Not if the stored bytes are unreliable: "not modified" would be of no use then. The stored media type helps to
    /// tell a bot-defence page from content.
    async fn add_validators(&self, items: &mut [FetchItem]) -> Result<(), HarvestError> {
        let bare: Vec<usize> =
            (0..items.len()).filter(|&n| items[n].declaration.digests.is_empty()).collect();
        let uris: Vec<ResourceUri> = bare.iter().map(|&n| items[n].uri.clone()).collect();
        for (n, record) in bare.into_iter().zip(self.catalog.resources_many(&uris).await?) {
            let Some(bitstream) = record.and_then(|record| record.bitstream) else { continue };
            let item = &mut items[n];
            if !item.mend && item.held.is_empty() {
                item.held = bitstream.validators;
            }
            item.held_type = bitstream.media_type;
        }
        Ok(())
    }

    pub(crate) async fn wait_until(&self, due: Timestamp) -> Result<(), HarvestError> {
        let wait = due.duration_since(self.clock.now());
        let wait = Duration::try_from(wait).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(wait) => Ok(()),
            () = self.stop.cancelled() => Err(HarvestError::Stopped),
        }
    }

    /// Whether a time lies further ahead than a run waits.
    fn is_beyond_patience(&self, now: Timestamp, due: Timestamp) -> bool {
        Duration::try_from(due.duration_since(now)).is_ok_and(|wait| wait > self.options.retries.longest_wait)
    }

    pub(crate) fn check_stop(&self) -> Result<(), HarvestError> {
        if self.stop.is_cancelled() { Err(HarvestError::Stopped) } else { Ok(()) }
    }
}

pub(crate) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
