//! The window: the bounded part of the pending work that is out in jobs, or ready to go.

use std::collections::{HashMap, HashSet, VecDeque};

use jiff::Timestamp;
use model::{FetchItem, JobId, Lane, ResourceUri};

/// The most resources one job holds.
const LARGEST_JOB: usize = 256;
/// The most bytes of URIs and declarations one job holds: its message, and those that follow from it, stay well below
/// what a bus takes.
const HEAVIEST_JOB: usize = 256 * 1024;
/// A job should last about this long, in milliseconds.
const JOB_MILLIS: f64 = 2_000.0;
/// Pending records that are read ahead of the jobs, over all lanes.
const READ_AHEAD: usize = 4_096;
/// A crash may cost the work in flight: it is kept below this share of the run.
const SHARE_IN_FLIGHT: u64 = 50;
/// Attempts in a row without a connection after which an origin counts as down.
const UNREACHABLE_IS_DOWN: u32 = 12;

/// Jobs in flight and resources ready to be put in one.
#[derive(Debug)]
pub(crate) struct Window {
    jobs_per_lane: usize,
    planned: u64,
    lanes: HashMap<Lane, LaneState>,
    jobs: HashMap<JobId, (Lane, Vec<ResourceUri>)>,
    taken: HashSet<ResourceUri>,
    ready: usize,
}

/// Why an origin is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Down {
    /// It did not answer many requests in a row.
    Silent,
    /// It asked to be left alone for longer than a run waits.
    Resting {
        /// Until then.
        until: Timestamp,
    },
}

#[derive(Debug, Default)]
struct LaneState {
    ready: VecDeque<FetchItem>,
    jobs: usize,
    /// Milliseconds one resource takes, smoothed.
    millis_per_resource: Option<f64>,
    unreachable_in_a_row: u32,
    resting: Option<Timestamp>,
}

impl Window {
    /// A window for a run that planned this many resources.
    pub(crate) fn new(jobs_per_lane: usize, planned: u64) -> Self {
        Self {
            jobs_per_lane,
            planned,
            lanes: HashMap::new(),
            jobs: HashMap::new(),
            taken: HashSet::new(),
            ready: 0,
        }
    }

    /// Whether more pending records may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.ready < READ_AHEAD
    }

    /// Whether a resource is already in the window.
    pub(crate) fn holds(&self, uri: &ResourceUri) -> bool {
        self.taken.contains(uri)
    }

    /// Takes a resource in.
    pub(crate) fn add(&mut self, lane: Lane, item: FetchItem) {
        self.taken.insert(item.uri.clone());
        self.lanes.entry(lane).or_default().ready.push_back(item);
        self.ready += 1;
    }

    /// The next job that may go out, if any; `last` says that no more records will come, so a small job need not wait.
    pub(crate) fn next_job(&mut self, last: bool) -> Option<(JobId, Lane, Vec<FetchItem>)> {
        let most_jobs = self.jobs_per_lane * 2;
        let planned = self.planned;
        let jobs_per_lane = self.jobs_per_lane;
        let (lane, items) = self.lanes.iter_mut().find_map(|(lane, state)| {
            let size = state.job_size(planned, jobs_per_lane);
            let enough = state.ready.len() >= size || (last && !state.ready.is_empty());
            if state.down().is_some() || state.jobs >= most_jobs || !enough {
                return None;
            }
            state.jobs += 1;
            let size = state.fitting(size);
            Some((lane.clone(), state.ready.drain(..size).collect::<Vec<_>>()))
        })?;
        self.ready -= items.len();
        let id = JobId::fresh();
        self.jobs.insert(id, (lane.clone(), items.iter().map(|item| item.uri.clone()).collect()));
        Some((id, lane, items))
    }

    /// Notes the end of a job. A job that is not ours (of an earlier owner) is nothing to note.
    pub(crate) fn job_done(&mut self, id: JobId, elapsed_millis: u64, tried: usize) {
        let Some((lane, uris)) = self.jobs.remove(&id) else { return };
        for uri in &uris {
            self.taken.remove(uri);
        }
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        state.jobs = state.jobs.saturating_sub(1);
        if tried > 0 {
            let now = elapsed_millis as f64 / tried as f64;
            state.millis_per_resource =
                Some(state.millis_per_resource.map_or(now, |before| 0.7 * before + 0.3 * now));
        }
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

    /// Resources out in jobs.
    pub(crate) fn in_flight(&self) -> usize {
        self.taken.len() - self.ready
    }

    /// Whether no job is out and nothing is ready to go out.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
            && self.lanes.values().all(|state| state.ready.is_empty() || state.down().is_some())
    }

    /// Forgets what is ready for origins that are left alone, so that it takes no room; it stays pending. Returns whether
    /// there was anything.
    pub(crate) fn shed_down(&mut self) -> bool {
        let before = self.ready;
        for state in self.lanes.values_mut().filter(|state| state.down().is_some()) {
            self.ready -= state.ready.len();
            for item in state.ready.drain(..) {
                self.taken.remove(&item.uri);
            }
        }
        self.ready < before
    }
}

impl LaneState {
    /// How many resources make a job: enough for a few seconds, few enough that a crash costs little of the run and
    /// that all slots stay busy to its end.
    fn job_size(&self, planned: u64, jobs_per_lane: usize) -> usize {
        let by_time =
            self.millis_per_resource.map_or(LARGEST_JOB, |millis| (JOB_MILLIS / millis.max(0.001)) as usize);
        let by_share = planned / (SHARE_IN_FLIGHT * 2 * jobs_per_lane as u64);
        by_time.min(usize::try_from(by_share).unwrap_or(LARGEST_JOB).max(8)).clamp(1, LARGEST_JOB)
    }

    /// How many of the first `most` resources go into one message; at least one.
    fn fitting(&self, most: usize) -> usize {
        let mut weight = 0;
        let fits = |item: &&FetchItem| {
            weight += weight_of(item);
            weight <= HEAVIEST_JOB
        };
        self.ready.iter().take(most).take_while(fits).count().max(1)
    }

    fn down(&self) -> Option<Down> {
        match self {
            Self { resting: Some(until), .. } => Some(Down::Resting { until: *until }),
            Self { unreachable_in_a_row: UNREACHABLE_IS_DOWN.., .. } => Some(Down::Silent),
            _ => None,
        }
    }
}

/// Bytes of an item that the Source decides about, roughly.
fn weight_of(item: &FetchItem) -> usize {
    let declaration = &item.declaration;
    let texts = [&declaration.media_type, &declaration.encoding, &item.held.etag, &item.held.last_modified];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    let unjudged: usize = declaration.unjudged.iter().map(String::len).sum();
    item.uri.as_str().len() + texts + unjudged + 100 * declaration.digests.len()
}

#[cfg(test)]
mod tests {
    use model::Seq;

    use super::*;

    fn lane() -> Lane {
        "http://h".parse().unwrap()
    }

    fn filled(jobs_per_lane: usize, planned: u64, resources: usize) -> Window {
        let mut window = Window::new(jobs_per_lane, planned);
        for n in 0..resources {
            let uri = format!("http://h/{n}").parse().unwrap();
            let item = FetchItem {
                uri,
                seq: Seq::new(1),
                declaration: Default::default(),
                held: Default::default(),
            };
            window.add(lane(), item);
        }
        window
    }

    #[test]
    fn what_is_out_stays_a_small_share_of_the_run() {
        let mut window = filled(4, 20_000, 4_096);
        while window.next_job(false).is_some() {}
        assert!(window.in_flight() > 0);
        assert!(window.in_flight() <= 20_000 / 50, "{}", window.in_flight());
    }

    #[test]
    fn a_large_run_gets_full_jobs_and_a_few_of_them() {
        let mut window = filled(4, 10_000_000, 4_096);
        let (_, _, items) = window.next_job(false).unwrap();
        assert_eq!(items.len(), LARGEST_JOB);
        let more = std::iter::from_fn(|| window.next_job(false)).count();
        assert_eq!(more + 1, 8);
    }

    #[test]
    fn a_slow_origin_gets_small_jobs() {
        let mut window = filled(4, 10_000_000, 1_000);
        let (id, ..) = window.next_job(false).unwrap();
        window.job_done(id, 256 * 500, 256);
        let (_, _, items) = window.next_job(false).unwrap();
        assert_eq!(items.len(), 4);
    }

    #[test]
    fn long_uris_make_jobs_of_fewer_resources() {
        let mut window = Window::new(4, 10_000_000);
        for n in 0..1_000 {
            let uri = format!("http://h/{n}/{}", "x".repeat(8_000)).parse().unwrap();
            let item = FetchItem {
                uri,
                seq: Seq::new(1),
                declaration: Default::default(),
                held: Default::default(),
            };
            window.add(lane(), item);
        }
        let (_, _, items) = window.next_job(false).unwrap();
        assert!((1..=HEAVIEST_JOB / 8_000).contains(&items.len()), "{}", items.len());
    }

    #[test]
    fn the_rest_goes_out_only_when_nothing_more_comes() {
        let mut window = filled(4, 10_000_000, 3);
        assert!(window.next_job(false).is_none());
        assert_eq!(window.next_job(true).unwrap().2.len(), 3);
    }

    #[test]
    fn a_resource_in_the_window_is_not_taken_twice_and_is_free_after_its_job() {
        let mut window = filled(4, 100, 1);
        let uri: ResourceUri = "http://h/0".parse().unwrap();
        assert!(window.holds(&uri));
        let (id, ..) = window.next_job(true).unwrap();
        assert!(window.holds(&uri));
        window.job_done(id, 10, 1);
        assert!(!window.holds(&uri));
        assert!(window.is_idle());
    }

    #[test]
    fn an_origin_that_never_answers_is_down_and_an_answer_brings_it_back() {
        let mut window = filled(4, 100, 20);
        for _ in 0..UNREACHABLE_IS_DOWN {
            window.reached(&lane(), false);
        }
        assert!(window.is_down(&lane()));
        assert!(window.next_job(true).is_none());
        window.reached(&lane(), true);
        assert!(window.next_job(true).is_some());
    }

    #[test]
    fn what_is_ready_for_an_origin_that_is_left_alone_takes_no_room() {
        let mut window = filled(4, 1_000_000, READ_AHEAD);
        assert!(!window.has_room());
        assert!(!window.shed_down());
        window.rest(&lane(), Timestamp::from_second(1_800_000_000).unwrap());
        assert!(window.shed_down());
        assert!(window.has_room() && window.is_idle());
        assert!(!window.holds(&"http://h/0".parse().unwrap()));
    }

    #[test]
    fn an_origin_that_asks_for_patience_is_left_alone_until_it_is_taken_up_anew() {
        let mut window = filled(4, 100, 20);
        let until = Timestamp::from_second(1_800_000_000).unwrap();
        window.rest(&lane(), until);
        assert!(window.next_job(true).is_none());
        assert_eq!(window.take_down(), [(lane(), Down::Resting { until })]);
        assert!(!window.is_down(&lane()));
    }
}
