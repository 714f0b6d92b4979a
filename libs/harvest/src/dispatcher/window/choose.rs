//! Chooses the origin of the next job.

use model::{FetchItem, Fetched, JobId, Origin};

use super::origin::{self, LARGEST_JOB, OriginState};
use super::{MOST_PLANS, Window};

/// Maximum outstanding jobs of candidates. While the scheduler sends, it takes no outcomes, and queues are finite:
/// with too many, both would wait for each other.
const CANDIDATE_JOBS: usize = 64;

impl Window {
    /// The next candidates that may go out together, if any; `last` as with [`Window::next_job`].
    pub(crate) fn next_candidates(&mut self, last: bool) -> Option<(JobId, Origin, Vec<Fetched>)> {
        self.note_pressure();
        if self.jobs.values().filter(|job| !job.asks).count() >= CANDIDATE_JOBS {
            return None;
        }
        let least = if last || self.is_pressed { 1 } else { LARGEST_JOB };
        let with_enough = self.origins.iter().filter(|(_, state)| state.candidates.len() >= least);
        let origin =
            with_enough.max_by_key(|(_, state)| state.candidates.len()).map(|(origin, _)| origin.clone())?;
        let items = self.origins.get_mut(&origin)?.take_candidates();
        self.forget_unused(&origin);
        let uris = items.iter().map(|item| item.uri.clone()).collect();
        let id = self.note_job(origin.clone(), uris, false);
        Some((id, origin, items))
    }

    /// The next job that may go out, if any. `last` says that no more records will come, so a small job need not
    /// wait. Nor does it wait when the window is full: then the origin with the most ready resources is next.
    /// Otherwise records of many origins would wait for each other for ever.
    pub(crate) fn next_job(&mut self, last: bool) -> Option<(JobId, Origin, Vec<FetchItem>)> {
        self.note_pressure();
        let origin = self.origin_with_enough(last).or_else(|| self.fullest_origin())?;
        let planned = self.planned;
        let jobs_per_origin = self.jobs_per_origin;
        let state = self.origins.get_mut(&origin)?;
        let size = state.fitting(state.job_size(planned, jobs_per_origin, last));
        state.jobs += 1;
        let items: Vec<FetchItem> = state.ready.drain(..size).collect();
        let uris = items.iter().map(|item| item.uri.clone()).collect();
        self.open.insert(&origin);
        let id = self.note_job(origin.clone(), uris, true);
        Some((id, origin, items))
    }

    /// Updates the pressure: on when the window is full, off when it has some room again. So not every record that is
    /// read makes a job.
    fn note_pressure(&mut self) {
        let most = self.limits.resources.get();
        self.is_pressed = self.ready >= most || (self.is_pressed && self.ready > most - most / 8);
    }

    fn origin_with_enough(&self, last: bool) -> Option<Origin> {
        let has_enough = |state: &OriginState| {
            let size = || state.job_size(self.planned, self.jobs_per_origin, last);
            !state.ready.is_empty() && (last || state.ready.len() >= size())
        };
        let mut origins = self.origins.iter();
        origins
            .find(|(origin, state)| has_enough(state) && self.may_send(origin, state))
            .map(|(origin, _)| origin.clone())
    }

    /// The origin with the most ready resources, when the window is full. The number of outstanding jobs stays
    /// bounded all the same.
    fn fullest_origin(&self) -> Option<Origin> {
        if !self.is_pressed || self.in_flight() >= MOST_PLANS {
            return None;
        }
        let origins = self.origins.iter().filter(|(origin, state)| self.may_send(origin, state));
        origins.max_by_key(|(_, state)| state.ready.len()).map(|(origin, _)| origin.clone())
    }

    fn may_send(&self, origin: &Origin, state: &OriginState) -> bool {
        !state.ready.is_empty()
            && state.jobs < origin::most_jobs(self.jobs_per_origin)
            && self.open.admits(origin)
            && !self.is_down(origin)
    }

    /// Idle origins whose queues must be closed, because others wait for a queue: no job is out for them, and no
    /// resource is ready.
    pub(crate) fn take_idle_origins(&mut self) -> Vec<Origin> {
        let waits =
            |(origin, state): (&Origin, &OriginState)| !state.ready.is_empty() && !self.open.holds(origin);
        if !self.open.is_full() || !self.origins.iter().any(waits) {
            return Vec::new();
        }
        let origins = &self.origins;
        let idle = self.open.take_idle(|origin| origins.get(origin).is_none_or(OriginState::is_idle));
        for origin in &idle {
            self.forget_unused(origin);
        }
        idle
    }

    /// Keeps queues that could not be closed.
    pub(crate) fn keep_open(&mut self, origins: Vec<Origin>) {
        for origin in origins {
            self.open.keep(origin);
        }
    }

    /// Forgets an origin without work and without an open queue.
    pub(super) fn forget_unused(&mut self, origin: &Origin) {
        if !self.open.holds(origin) && self.origins.get(origin).is_some_and(OriginState::is_idle) {
            self.origins.remove(origin);
        }
    }
}
