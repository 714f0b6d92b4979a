//! Waits for the work of a run: reports its progress, and stops it when it must.

use std::time::Duration;

use control::{ControlError, DesiredState, Progress, TaskProgress};
use harvest::HarvestError;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::{RunExecutor, RunExit};

/// How often progress is reported and the operator's requests are read.
const TELL: Duration = Duration::from_secs(1);
/// How the awaited future ended.
pub(super) enum Attended<T> {
    Ended(Result<T, HarvestError>),
    RunExit(RunExit),
}

impl RunExecutor<'_> {
    /// Waits for `work`; meanwhile reports progress and reads the operator's requests. Stops the work if the operator
    /// or this service asks for that, or other runs have their turn; drops it if the Source is lost.
    pub(super) async fn attend<T>(
        &mut self,
        work: impl Future<Output = Result<T, HarvestError>>,
        stop: &CancellationToken,
    ) -> Result<Attended<T>, ControlError> {
        let mut work = std::pin::pin!(work);
        // Not at once: most runs of small Sources are over sooner, and their end reports everything.
        let mut tick = interval_at(Instant::now() + TELL, TELL);
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
                () = self.preempt.cancelled(), if !stop.is_cancelled() => {
                    self.leaves_since = Some(Instant::now());
                    stop.cancel();
                }
            }
            if stop.is_cancelled() && self.waits_for.is_some() {
                // No work is in progress that must end first.
                return self.stopped().await.map(Attended::RunExit);
            }
        }
    }

    /// Stops the work if it must leave its place. Returns whether it has not stopped in time, and is dropped: a body
    /// that trickles in must not keep the place.
    pub(super) fn must_leave(&mut self, stop: &CancellationToken) -> bool {
        let entries = self.progress.borrow().counters.listed;
        if !stop.is_cancelled() && self.place.should_yield(entries) {
            tracing::debug!(run.id = %self.id, entries, "the run leaves its place to others");
            self.leaves_since = Some(Instant::now());
            stop.cancel();
        }
        if self.is_task() && stop.is_cancelled() {
            // It stops between two groups of resources, and a slow origin may hold that up.
            self.leaves_since.get_or_insert_with(Instant::now);
        }
        self.leaves_since.is_some_and(|since| since.elapsed() >= self.longest_leaving())
    }

    /// Reports progress; returns whether the run is still wanted. While the control store is unavailable, it is.
    pub(super) async fn tell(&self) -> Result<bool, ControlError> {
        let now = self.context.clock.now();
        match self.runs().tell(self.lease, self.id, self.progress_now(), now).await {
            Ok(run) => Ok(run.wanted == DesiredState::Run),
            Err(error) if error.is_temporary() => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The progress as it is reported.
    pub(super) fn progress_now(&self) -> Progress {
        let mut now = self.progress.borrow().clone();
        let task = self.task.borrow().clone();
        match &task {
            // Versions are no resources: the metrics of resources do not count them.
            Some(TaskProgress::Backfill { counts, .. }) => {
                let counters = &mut now.counters;
                (counters.stored, counters.failed) = (counts.stored, counts.failures());
                (counters.bytes, counters.requests) = (counts.bytes, counts.requests);
            }
            None => self.meter.note(&now),
        }
        Progress {
            phase: now.phase,
            counters: now.counters,
            pending: now.phase.map(|_| now.pending),
            waits_for: self.waits_for.clone(),
            told_at: None,
            problems: self.problems,
            title: self.title.clone(),
            poll: self.poll.clone(),
            task,
        }
    }
}
