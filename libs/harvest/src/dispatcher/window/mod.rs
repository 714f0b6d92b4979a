//! The window: the bounded part of the pending work that is out in jobs, or ready to be sent.

mod choose;
mod open;
mod origin;
#[cfg(test)]
mod origins_tests;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use model::{FetchItem, Fetched, JobId, Origin, PendingRecord, ResourceUri};
use open::OpenOrigins;
use origin::OriginState;
use planning::{ByUri, READ_AHEAD, WindowLimits};
use trouble::Troubles;

use crate::settler::failures::Down;

/// Pending records kept until their outcomes arrive. If many origins are slow at the same time, further ones are read
/// again.
const MOST_PLANS: usize = 6 * READ_AHEAD;
/// Resources that are out in the jobs of one origin: their records are kept, with those of what is ready.
const MOST_OUT: usize = MOST_PLANS - 2 * READ_AHEAD;
/// Bytes of links in the kept records. Records beyond them are read again, as those beyond [`MOST_PLANS`].
const MOST_LINK_BYTES: usize = 8 * 1024 * 1024;

/// Outstanding jobs, and resources ready to be put in one.
#[derive(Debug)]
pub(crate) struct Window {
    limits: WindowLimits,
    jobs_per_origin: usize,
    planned: u64,
    /// Milliseconds that a resource is expected to take, before any was fetched.
    expected_millis: Option<f64>,
    origins: HashMap<Origin, OriginState>,
    jobs: HashMap<JobId, Job>,
    /// The resources in it, with their pending records as far as these are kept.
    taken: ByUri<Option<Box<PendingRecord>>>,
    /// Number of kept records.
    plans: usize,
    /// Bytes of their links.
    link_bytes: usize,
    ready: usize,
    /// Whether the window is full, or was a moment ago.
    is_pressed: bool,
    open: OpenOrigins,
    troubles: Troubles,
}

/// An outstanding job.
#[derive(Debug)]
struct Job {
    origin: Origin,
    uris: Vec<ResourceUri>,
    /// Whether it makes requests to its origin.
    asks: bool,
}

impl Window {
    /// A window for a run that planned this many resources.
    pub(crate) fn within(limits: WindowLimits, jobs_per_origin: usize, planned: u64) -> Self {
        Self {
            limits,
            jobs_per_origin,
            planned,
            expected_millis: None,
            origins: HashMap::new(),
            jobs: HashMap::new(),
            taken: ByUri::default(),
            plans: 0,
            link_bytes: 0,
            ready: 0,
            is_pressed: false,
            open: OpenOrigins::at_most(limits.origins.get()),
            troubles: Troubles::default(),
        }
    }

    /// Expects that resources take this long, until some were fetched. So the first jobs of a distant Source are small,
    /// and all its slots are used at once.
    pub(crate) fn expecting(self, wait: Option<Duration>) -> Self {
        Self { expected_millis: wait.map(|wait| wait.as_secs_f64() * 1_000.0), ..self }
    }

    /// Whether more pending records may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.ready < self.limits.resources.get()
    }

    /// Whether a resource is already in the window.
    pub(crate) fn holds(&self, uri: &ResourceUri) -> bool {
        self.taken.contains_key(uri)
    }

    /// Adds a resource, as `plan` asks for it.
    pub(crate) fn add(&mut self, origin: Origin, item: FetchItem, plan: Box<PendingRecord>) {
        self.take(&item.uri, plan);
        self.state(origin).ready.push_back(item);
    }

    /// Adds a candidate to verify. Its origin gets no request.
    pub(crate) fn add_candidate(&mut self, origin: Origin, candidate: Fetched, plan: Box<PendingRecord>) {
        self.take(&candidate.uri, plan);
        self.state(origin).candidates.push_back(candidate);
    }

    fn state(&mut self, origin: Origin) -> &mut OriginState {
        let expected_millis = self.expected_millis;
        self.origins
            .entry(origin)
            .or_insert_with(|| OriginState { expected_millis, ..OriginState::default() })
    }

    fn take(&mut self, uri: &ResourceUri, plan: Box<PendingRecord>) {
        let bytes = bytes_of_links(&plan);
        let is_kept = self.plans < MOST_PLANS && self.link_bytes + bytes <= MOST_LINK_BYTES;
        let plan = is_kept.then_some(plan);
        if is_kept {
            self.plans += 1;
            self.link_bytes += bytes;
        }
        self.taken.insert(uri.clone(), plan);
        self.ready += 1;
    }

    /// The pending record of a resource as it was when it was added. Returned once, because its outcome may create
    /// another record. None if it is not kept, which means nothing.
    pub(crate) fn take_plan(&mut self, uri: &ResourceUri) -> Option<Box<PendingRecord>> {
        let plan = self.taken.get_mut(uri)?.take()?;
        self.forget_plan(&plan);
        Some(plan)
    }

    fn let_go(&mut self, uri: &ResourceUri) {
        if let Some(plan) = self.taken.remove(uri).flatten() {
            self.forget_plan(&plan);
        }
    }

    fn forget_plan(&mut self, plan: &PendingRecord) {
        self.plans -= 1;
        self.link_bytes -= bytes_of_links(plan);
    }

    fn note_job(&mut self, origin: Origin, uris: Vec<ResourceUri>, asks: bool) -> JobId {
        self.ready -= uris.len();
        let id = JobId::fresh();
        self.jobs.insert(id, Job { origin, uris, asks });
        id
    }

    /// Whether a job makes requests to its origin, so that its end says something about the origin.
    pub(crate) fn asks(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_none_or(|job| job.asks)
    }

    /// The resources of an outstanding job; none for a job of another owner.
    pub(crate) fn resources_of(&self, id: JobId) -> &[ResourceUri] {
        self.jobs.get(&id).map_or(&[], |job| &job.uris)
    }

    /// Records the end of a job. A job of an earlier owner is ignored.
    pub(crate) fn job_done(&mut self, id: JobId, elapsed_millis: u64, tried: usize) {
        let Some(Job { origin, uris, asks }) = self.jobs.remove(&id) else { return };
        for uri in &uris {
            self.let_go(uri);
        }
        let Some(state) = self.origins.get_mut(&origin).filter(|_| asks) else { return };
        state.jobs = state.jobs.saturating_sub(1);
        if tried > 0 {
            let now = elapsed_millis as f64 / tried as f64;
            state.millis_per_resource =
                Some(state.millis_per_resource.map_or(now, |before| 0.7 * before + 0.3 * now));
        }
    }

    /// The origins with outstanding jobs.
    pub(crate) fn origins_out(&self) -> HashSet<Origin> {
        self.jobs.values().filter(|job| job.asks).map(|job| job.origin.clone()).collect()
    }

    /// Number of outstanding jobs.
    pub(crate) fn jobs_out(&self) -> usize {
        self.jobs.len()
    }

    /// Forgets the outstanding jobs: their resources must be read again. Returns how many there were.
    pub(crate) fn forget_jobs(&mut self) -> usize {
        let out: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in &out {
            self.job_done(*id, 0, 0);
        }
        out.len()
    }

    /// Records whether the origin answered.
    pub(crate) fn reached(&mut self, origin: &Origin, answered: bool) {
        self.troubles.reached(origin, answered);
    }

    /// Records that an origin requested a longer cooldown than a run allows.
    pub(crate) fn rest(&mut self, origin: &Origin, until: Timestamp) {
        self.troubles.rest(origin, until);
    }

    /// Whether an origin is skipped, to avoid useless requests.
    pub(crate) fn is_down(&self, origin: &Origin) -> bool {
        self.troubles.down(origin).is_some()
    }

    /// The skipped origins; from now on they count as new.
    pub(crate) fn take_down(&mut self) -> HashMap<Origin, Down> {
        self.shed_down();
        let down = self.troubles.take_down();
        for origin in down.keys() {
            self.origins.remove(origin);
        }
        down
    }

    /// The origins whose queues may still be open.
    pub(crate) fn into_origins(self) -> HashSet<Origin> {
        self.open.into_all()
    }

    /// Outstanding jobs, and their maximum at the origins that have work and get requests.
    pub(crate) fn jobs(&self) -> (usize, usize) {
        let is_busy = |state: &OriginState| state.jobs > 0 || !state.ready.is_empty();
        let busy =
            self.origins.iter().filter(|(origin, state)| is_busy(state) && !self.is_down(origin)).count();
        (self.jobs.values().filter(|job| job.asks).count(), busy * origin::most_jobs(self.jobs_per_origin))
    }

    /// Whether nothing waits to go out.
    pub(crate) fn is_all_out(&self) -> bool {
        self.ready == 0
    }

    /// Resources in outstanding jobs.
    pub(crate) fn in_flight(&self) -> usize {
        self.taken.len() - self.ready
    }

    /// Whether no job is out and no resource is ready.
    pub(crate) fn is_idle(&self) -> bool {
        let is_idle = |(origin, state): (&Origin, &OriginState)| {
            state.candidates.is_empty() && (state.ready.is_empty() || self.is_down(origin))
        };
        self.jobs.is_empty() && self.origins.iter().all(is_idle)
    }

    /// Drops the ready resources of skipped origins, so that they take no room; they stay pending. Returns whether
    /// there were any.
    pub(crate) fn shed_down(&mut self) -> bool {
        let troubles = &self.troubles;
        let down = self
            .origins
            .iter_mut()
            .filter(|(origin, state)| !state.ready.is_empty() && troubles.down(origin).is_some());
        let shed: Vec<FetchItem> = down.flat_map(|(_, state)| std::mem::take(&mut state.ready)).collect();
        self.shed(&shed)
    }

    /// Drops the ready resources that would be requested at a mirror; they stay pending. Returns whether there were any.
    pub(crate) fn shed_mirrored(&mut self, mirror: &Origin) -> bool {
        let Some(state) = self.origins.get_mut(mirror) else { return false };
        let ready = std::mem::take(&mut state.ready).into_iter();
        let (shed, kept): (Vec<FetchItem>, Vec<FetchItem>) = ready.partition(|item| item.from.is_some());
        state.ready = kept.into();
        self.shed(&shed)
    }

    fn shed(&mut self, items: &[FetchItem]) -> bool {
        self.ready -= items.len();
        for item in items {
            self.let_go(&item.uri);
        }
        !items.is_empty()
    }
}

/// Bytes of its links, and of the patches among them.
fn bytes_of_links(plan: &PendingRecord) -> usize {
    let steps = plan.patch.iter().flat_map(|patch| &patch.steps);
    let patches: usize = steps.map(|step| step.url.as_str().len()).sum();
    patches + plan.listing.links.as_ref().map_or(0, |links| links.as_str().len())
}
