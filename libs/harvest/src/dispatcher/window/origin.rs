//! One origin in the window: its ready resources, and the size of its jobs.

use std::collections::VecDeque;

use model::{Declaration, FetchItem, Fetched, FetchedResult, Validators};

use super::MOST_OUT;

/// Maximum resources of a job: those of a full pack. Each job costs a pack, three messages and a commit. Their outcomes
/// are one message, of less than a MiB; the fetcher and the verifier defer what does not fit.
pub(super) const LARGEST_JOB: usize = 1_024;
/// Resources that a job of a short run may have, though they are a larger share of it: to request them again is quick.
const SMALLEST_SHARE: usize = 16;
/// Maximum bytes of URIs and declarations in a job: its message, and those that follow from it, stay well below the
/// limit of a bus.
pub(super) const HEAVIEST_JOB: usize = 256 * 1024;
/// Target duration of a job, in milliseconds. Each job costs a pack, so short jobs of slow origins would cost a store
/// that charges for requests several times as much. A fetcher that stops finishes its jobs first.
const JOB_MILLIS: f64 = 10_000.0;
/// Minimum duration of the last jobs, in milliseconds. Towards the end jobs become smaller, so that no slot waits
/// long for another one's last job. But each job costs a pack, three messages and a commit.
const LAST_JOBS_MILLIS: f64 = 100.0;
/// A crash may cost the work in flight: it is kept below `1 / SHARE_IN_FLIGHT` of the run, but for short runs.
const SHARE_IN_FLIGHT: u64 = 25;
/// One spare job per this number of an origin's slots is out, so that the next job is ready when one ends. With more,
/// jobs would have to be smaller, and each costs a pack, three messages and a commit.
const SLOTS_PER_SPARE_JOB: usize = 4;
/// Maximum outstanding jobs of an origin with this number of slots.
pub(super) fn most_jobs(jobs_per_origin: usize) -> usize {
    jobs_per_origin + jobs_per_origin.div_ceil(SLOTS_PER_SPARE_JOB)
}

/// State of one origin.
#[derive(Debug, Default)]
pub(super) struct OriginState {
    pub(super) ready: VecDeque<FetchItem>,
    /// Candidates to verify, without a request to this origin.
    pub(super) candidates: VecDeque<Fetched>,
    pub(super) jobs: usize,
    /// Milliseconds per resource, smoothed.
    pub(super) millis_per_resource: Option<f64>,
    /// Milliseconds that a resource is expected to take, before any was fetched.
    pub(super) expected_millis: Option<f64>,
}

impl OriginState {
    /// Number of resources in a job: enough for a few seconds, but few enough that a crash costs little of the run, that
    /// all slots stay busy to its end, and that the records of all that is out are kept in memory. `last` says that the
    /// ready resources are all that is left.
    pub(super) fn job_size(&self, planned: u64, jobs_per_origin: usize, last: bool) -> usize {
        let by_time = self.millis().map_or(LARGEST_JOB, |millis| (JOB_MILLIS / millis.max(0.001)) as usize);
        let by_share = planned / (SHARE_IN_FLIGHT * most_jobs(jobs_per_origin) as u64);
        let by_share = usize::try_from(by_share).unwrap_or(LARGEST_JOB).max(SMALLEST_SHARE);
        let by_plans = (MOST_OUT / most_jobs(jobs_per_origin)).max(SMALLEST_SHARE);
        // Of a short run of a slow origin, all resources would be out at once, and some slots would get two jobs.
        let all = usize::try_from(planned).unwrap_or(usize::MAX);
        let by_slots = self.half_a_share(all, jobs_per_origin);
        let size = by_time.min(by_share).min(by_plans).min(by_slots).clamp(1, LARGEST_JOB);
        if last { size.min(self.half_a_share(self.ready.len(), jobs_per_origin)) } else { size }
    }

    /// Milliseconds per resource: measured, or else expected.
    fn millis(&self) -> Option<f64> {
        self.millis_per_resource.or(self.expected_millis)
    }

    /// Half of each slot's share of so many resources, but no less than is worth a job. A single slot waits for no
    /// other.
    fn half_a_share(&self, resources: usize, jobs_per_origin: usize) -> usize {
        let Some(millis) = self.millis().filter(|_| jobs_per_origin > 1) else {
            return LARGEST_JOB;
        };
        let worth_a_job = (LAST_JOBS_MILLIS / millis.max(0.001)).ceil() as usize;
        resources.div_ceil(2 * jobs_per_origin).max(worth_a_job)
    }

    /// How many of the first `most` resources fit into one message; at least one.
    pub(super) fn fitting(&self, most: usize) -> usize {
        fitting(self.ready.iter().take(most).map(weight_of))
    }

    /// Takes as many candidates as fit into one message.
    pub(super) fn take_candidates(&mut self) -> Vec<Fetched> {
        let size = fitting(self.candidates.iter().take(LARGEST_JOB).map(weight_of_candidate));
        self.candidates.drain(..size).collect()
    }

    /// Whether this origin has no outstanding job and no ready resource.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs == 0 && self.ready.is_empty() && self.candidates.is_empty()
    }
}

/// How many of the first weights fit into one message; at least one.
fn fitting(weights: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0;
    let fits = |weight: &usize| {
        sum += weight;
        sum <= HEAVIEST_JOB
    };
    weights.take_while(fits).count().max(1)
}

/// Approximate bytes of an item that the Source determines.
fn weight_of(item: &FetchItem) -> usize {
    let from = item.from.as_ref().map_or(0, |from| from.as_str().len());
    let steps = item.patch.iter().flat_map(|patch| &patch.steps);
    let patches: usize = steps.map(|step| step.url.as_str().len() + 800).sum();
    from + patches
        + item.uri.as_str().len()
        + weight_of_declaration(&item.declaration)
        + weight_of_validators(&item.held)
}

fn weight_of_candidate(item: &Fetched) -> usize {
    let kept = match &item.result {
        FetchedResult::Kept(kept) => {
            let texts =
                [&kept.media_type, &kept.encoding, &kept.final_url].into_iter().flatten().map(String::len);
            texts.sum::<usize>()
                + weight_of_validators(&kept.validators)
                + 100 * kept.computed.digests().len()
        }
        _ => 0,
    };
    item.uri.as_str().len() + weight_of_declaration(&item.declaration) + kept
}

fn weight_of_declaration(declaration: &Declaration) -> usize {
    let texts: usize =
        [&declaration.media_type, &declaration.encoding].into_iter().flatten().map(String::len).sum();
    let unjudged: usize = declaration.unjudged.iter().map(String::len).sum();
    texts + unjudged + 100 * declaration.digests.len()
}

fn weight_of_validators(validators: &Validators) -> usize {
    [&validators.etag, &validators.last_modified].into_iter().flatten().map(String::len).sum()
}
