//! The window: the bounded part of the pending work that is out in jobs, or ready to go.

mod lane;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use model::{FetchItem, Fetched, JobId, Lane, PendingRecord, ResourceUri};

use crate::by_uri::ByUri;
pub(crate) use lane::Down;
use lane::{LARGEST_JOB, LaneState};

/// Pending records that are read ahead of the jobs, over all lanes.
const READ_AHEAD: usize = 4_096;
/// Pending records that are kept until their outcomes come. Beyond them, where many origins are slow at the same time, they are read again.
const MOST_PLANS: usize = 4 * READ_AHEAD;

/// Jobs in flight and resources ready to be put in one.
#[derive(Debug)]
pub(crate) struct Window {
    jobs_per_lane: usize,
    planned: u64,
    lanes: HashMap<Lane, LaneState>,
    jobs: HashMap<JobId, Job>,
    /// The resources in it, with their pending records as far as these are kept.
    taken: ByUri<Option<Box<PendingRecord>>>,
    /// How many are kept.
    plans: usize,
    ready: usize,
    /// Lanes for which a job went out.
    used: HashSet<Lane>,
}

/// A job that is out.
#[derive(Debug)]
struct Job {
    lane: Lane,
    uris: Vec<ResourceUri>,
    /// Whether it asks its origin for anything.
    asks: bool,
}

impl Window {
    /// A window for a run that planned this many resources.
    pub(crate) fn new(jobs_per_lane: usize, planned: u64) -> Self {
        Self {
            jobs_per_lane,
            planned,
            lanes: HashMap::new(),
            jobs: HashMap::new(),
            taken: ByUri::default(),
            plans: 0,
            ready: 0,
            used: HashSet::new(),
        }
    }

    /// Whether more pending records may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.ready < READ_AHEAD
    }

    /// Whether a resource is already in the window.
    pub(crate) fn holds(&self, uri: &ResourceUri) -> bool {
        self.taken.contains_key(uri)
    }

    /// Takes a resource in, as `plan` asks for it.
    pub(crate) fn add(&mut self, lane: Lane, item: FetchItem, plan: Box<PendingRecord>) {
        self.take(&item.uri, plan);
        self.lanes.entry(lane).or_default().ready.push_back(item);
    }

    /// Takes in a candidate that is to be judged. Its origin is not asked for anything.
    pub(crate) fn add_candidate(&mut self, lane: Lane, candidate: Fetched, plan: Box<PendingRecord>) {
        self.take(&candidate.uri, plan);
        self.lanes.entry(lane).or_default().candidates.push_back(candidate);
    }

    fn take(&mut self, uri: &ResourceUri, plan: Box<PendingRecord>) {
        let plan = (self.plans < MOST_PLANS).then_some(plan);
        self.plans += usize::from(plan.is_some());
        self.taken.insert(uri.clone(), plan);
        self.ready += 1;
    }

    /// The pending record of a resource as it was when it was taken in. Given once: what comes of it may be another record. None where it
    /// is not kept, which says nothing.
    pub(crate) fn take_plan(&mut self, uri: &ResourceUri) -> Option<Box<PendingRecord>> {
        let plan = self.taken.get_mut(uri)?.take()?;
        self.plans -= 1;
        Some(plan)
    }

    fn let_go(&mut self, uri: &ResourceUri) {
        self.plans -= usize::from(self.taken.remove(uri).flatten().is_some());
    }

    /// The next candidates that may go out together, if any; `last` as with [`Window::next_job`].
    pub(crate) fn next_candidates(&mut self, last: bool) -> Option<(JobId, Lane, Vec<Fetched>)> {
        let (lane, items) = self.lanes.iter_mut().find_map(|(lane, state)| {
            let enough = state.candidates.len() >= if last { 1 } else { LARGEST_JOB };
            enough.then(|| (lane.clone(), state.take_candidates()))
        })?;
        let uris = items.iter().map(|item| item.uri.clone()).collect();
        let id = self.note_job(lane.clone(), uris, false);
        Some((id, lane, items))
    }

    fn note_job(&mut self, lane: Lane, uris: Vec<ResourceUri>, asks: bool) -> JobId {
        self.ready -= uris.len();
        let id = JobId::fresh();
        self.jobs.insert(id, Job { lane, uris, asks });
        id
    }

    /// Whether a job asks its origin, so that its end tells something of that one.
    pub(crate) fn asks(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_none_or(|job| job.asks)
    }

    /// The next job that may go out, if any; `last` says that no more records will come, so a small job need not wait.
    pub(crate) fn next_job(&mut self, last: bool) -> Option<(JobId, Lane, Vec<FetchItem>)> {
        let most_jobs = lane::most_jobs(self.jobs_per_lane);
        let planned = self.planned;
        let jobs_per_lane = self.jobs_per_lane;
        let (lane, items) = self.lanes.iter_mut().find_map(|(lane, state)| {
            let size = state.job_size(planned, jobs_per_lane, last);
            let enough = state.ready.len() >= size || (last && !state.ready.is_empty());
            if state.down().is_some() || state.jobs >= most_jobs || !enough {
                return None;
            }
            state.jobs += 1;
            let size = state.fitting(size);
            Some((lane.clone(), state.ready.drain(..size).collect::<Vec<_>>()))
        })?;
        let uris = items.iter().map(|item| item.uri.clone()).collect();
        self.used.insert(lane.clone());
        let id = self.note_job(lane.clone(), uris, true);
        Some((id, lane, items))
    }

    /// The resources of a job that is out; none of a job that is not ours.
    pub(crate) fn resources_of(&self, id: JobId) -> &[ResourceUri] {
        self.jobs.get(&id).map_or(&[], |job| &job.uris)
    }

    /// Notes the end of a job. A job that is not ours (of an earlier owner) is nothing to note.
    pub(crate) fn job_done(&mut self, id: JobId, elapsed_millis: u64, tried: usize) {
        let Some(Job { lane, uris, asks }) = self.jobs.remove(&id) else { return };
        for uri in &uris {
            self.let_go(uri);
        }
        let Some(state) = self.lanes.get_mut(&lane).filter(|_| asks) else { return };
        state.jobs = state.jobs.saturating_sub(1);
        if tried > 0 {
            let now = elapsed_millis as f64 / tried as f64;
            state.millis_per_resource =
                Some(state.millis_per_resource.map_or(now, |before| 0.7 * before + 0.3 * now));
        }
    }

    /// The lanes that jobs are out for.
    pub(crate) fn lanes_out(&self) -> HashSet<Lane> {
        self.jobs.values().filter(|job| job.asks).map(|job| job.lane.clone()).collect()
    }

    /// Forgets the jobs that are out: their resources are to be read anew. Returns how many there were.
    pub(crate) fn forget_jobs(&mut self) -> usize {
        let out: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in &out {
            self.job_done(*id, 0, 0);
        }
        out.len()
    }

    /// Notes whether the origin answered.
    pub(crate) fn reached(&mut self, lane: &Lane, answered: bool) {
        if let Some(state) = self.lanes.get_mut(lane) {
            state.unreachable_in_a_row = if answered { 0 } else { state.unreachable_in_a_row + 1 };
        }
    }

    /// Notes that an origin asked for more patience than a run has.
    pub(crate) fn rest(&mut self, lane: &Lane, until: Timestamp) {
        let state = self.lanes.entry(lane.clone()).or_default();
        state.resting = state.resting.max(Some(until));
    }

    /// Whether an origin is left alone: nobody is asked in vain again and again.
    pub(crate) fn is_down(&self, lane: &Lane) -> bool {
        self.lanes.get(lane).is_some_and(|state| state.down().is_some())
    }

    /// The origins that are left alone; from now on they count as new.
    pub(crate) fn take_down(&mut self) -> Vec<(Lane, Down)> {
        let down: Vec<(Lane, Down)> =
            self.lanes.iter().filter_map(|(lane, state)| Some((lane.clone(), state.down()?))).collect();
        for (lane, _) in &down {
            self.lanes.remove(lane);
        }
        down
    }

    /// The lanes for which a job went out.
    pub(crate) fn into_lanes(self) -> HashSet<Lane> {
        self.used
    }

    /// Jobs that are out, and the most that may be at the origins that have work and are asked.
    pub(crate) fn jobs(&self) -> (usize, usize) {
        let lanes = self.lanes.values().filter(|state| state.down().is_none());
        let busy = lanes.filter(|state| state.jobs > 0 || !state.ready.is_empty()).count();
        (self.jobs.values().filter(|job| job.asks).count(), busy * lane::most_jobs(self.jobs_per_lane))
    }

    /// Resources out in jobs.
    pub(crate) fn in_flight(&self) -> usize {
        self.taken.len() - self.ready
    }

    /// Whether no job is out and nothing is ready to go out.
    pub(crate) fn is_idle(&self) -> bool {
        let is_idle = |state: &LaneState| {
            state.candidates.is_empty() && (state.ready.is_empty() || state.down().is_some())
        };
        self.jobs.is_empty() && self.lanes.values().all(is_idle)
    }

    /// Forgets what is ready for origins that are left alone, so that it takes no room; it stays pending. Returns whether
    /// there was anything.
    pub(crate) fn shed_down(&mut self) -> bool {
        let down = self.lanes.values_mut().filter(|state| state.down().is_some());
        let shed: Vec<FetchItem> = down.flat_map(|state| std::mem::take(&mut state.ready)).collect();
        self.ready -= shed.len();
        for item in &shed {
            self.let_go(&item.uri);
        }
        !shed.is_empty()
    }
}
