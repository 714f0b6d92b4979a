//! Chooses the origin of the next job.

use model::{FetchItem, Fetched, JobId, Lane};

use super::lane::{self, LARGEST_JOB, LaneState};
use super::{MOST_PLANS, Window};

/// Maximum outstanding jobs of candidates. While the scheduler sends, it takes no outcomes, and queues are finite:
/// with too many, both would wait for each other.
const CANDIDATE_JOBS: usize = 64;

impl Window {
    /// The next candidates that may go out together, if any; `last` as with [`Window::next_job`].
    pub(crate) fn next_candidates(&mut self, last: bool) -> Option<(JobId, Lane, Vec<Fetched>)> {
        self.note_pressure();
        if self.jobs.values().filter(|job| !job.asks).count() >= CANDIDATE_JOBS {
            return None;
        }
        let least = if last || self.is_pressed { 1 } else { LARGEST_JOB };
        let with_enough = self.lanes.iter().filter(|(_, state)| state.candidates.len() >= least);
        let lane =
            with_enough.max_by_key(|(_, state)| state.candidates.len()).map(|(lane, _)| lane.clone())?;
        let items = self.lanes.get_mut(&lane)?.take_candidates();
        self.forget_unused(&lane);
        let uris = items.iter().map(|item| item.uri.clone()).collect();
        let id = self.note_job(lane.clone(), uris, false);
        Some((id, lane, items))
    }

    /// The next job that may go out, if any. `last` says that no more records will come, so a small job need not
    /// wait. Nor does it wait when the window is full: then the origin with the most ready resources is next.
    /// Otherwise records of many origins would wait for each other for ever.
    pub(crate) fn next_job(&mut self, last: bool) -> Option<(JobId, Lane, Vec<FetchItem>)> {
        self.note_pressure();
        let lane = self.lane_with_enough(last).or_else(|| self.fullest_lane())?;
        let planned = self.planned;
        let jobs_per_lane = self.jobs_per_lane;
        let state = self.lanes.get_mut(&lane)?;
        let size = state.fitting(state.job_size(planned, jobs_per_lane, last));
        state.jobs += 1;
        let items: Vec<FetchItem> = state.ready.drain(..size).collect();
        let uris = items.iter().map(|item| item.uri.clone()).collect();
        self.open.insert(&lane);
        let id = self.note_job(lane.clone(), uris, true);
        Some((id, lane, items))
    }

    /// Updates the pressure: on when the window is full, off when it has some room again. So not every record that is
    /// read makes a job.
    fn note_pressure(&mut self) {
        let most = self.limits.resources.get();
        self.is_pressed = self.ready >= most || (self.is_pressed && self.ready > most - most / 8);
    }

    fn lane_with_enough(&self, last: bool) -> Option<Lane> {
        let has_enough = |state: &LaneState| {
            let size = || state.job_size(self.planned, self.jobs_per_lane, last);
            !state.ready.is_empty() && (last || state.ready.len() >= size())
        };
        let mut lanes = self.lanes.iter();
        lanes
            .find(|(lane, state)| has_enough(state) && self.may_send(lane, state))
            .map(|(lane, _)| lane.clone())
    }

    /// The origin with the most ready resources, when the window is full. The number of outstanding jobs stays
    /// bounded all the same.
    fn fullest_lane(&self) -> Option<Lane> {
        if !self.is_pressed || self.in_flight() >= MOST_PLANS {
            return None;
        }
        let lanes = self.lanes.iter().filter(|(lane, state)| self.may_send(lane, state));
        lanes.max_by_key(|(_, state)| state.ready.len()).map(|(lane, _)| lane.clone())
    }

    fn may_send(&self, lane: &Lane, state: &LaneState) -> bool {
        !state.ready.is_empty()
            && state.jobs < lane::most_jobs(self.jobs_per_lane)
            && self.open.admits(lane)
            && !self.is_down(lane)
    }

    /// Idle origins whose queues must be closed, because others wait for a queue: no job is out for them, and no
    /// resource is ready.
    pub(crate) fn take_idle_lanes(&mut self) -> Vec<Lane> {
        let waits = |(lane, state): (&Lane, &LaneState)| !state.ready.is_empty() && !self.open.holds(lane);
        if !self.open.is_full() || !self.lanes.iter().any(waits) {
            return Vec::new();
        }
        let lanes = &self.lanes;
        let idle = self.open.take_idle(|lane| lanes.get(lane).is_none_or(LaneState::is_idle));
        for lane in &idle {
            self.forget_unused(lane);
        }
        idle
    }

    /// Keeps queues that could not be closed.
    pub(crate) fn keep_open(&mut self, lanes: Vec<Lane>) {
        for lane in lanes {
            self.open.keep(lane);
        }
    }

    /// Forgets an origin without work and without an open queue.
    pub(super) fn forget_unused(&mut self, lane: &Lane) {
        if !self.open.holds(lane) && self.lanes.get(lane).is_some_and(LaneState::is_idle) {
            self.lanes.remove(lane);
        }
    }
}
