//! One origin in the window: what is ready for it and how large its jobs are.

use std::collections::VecDeque;

use model::{Declaration, FetchItem, Fetched, FetchedResult, Validators};

/// The most resources one job holds.
pub(super) const LARGEST_JOB: usize = 256;
/// The most bytes of URIs and declarations one job holds: its message, and those that follow from it, stay well below
/// what a bus takes.
pub(super) const HEAVIEST_JOB: usize = 256 * 1024;
/// A job should last about this long, in milliseconds.
const JOB_MILLIS: f64 = 2_000.0;
/// Towards the end jobs become smaller, so that no slot waits long for another one's last job; but not shorter than this, in milliseconds:
/// each costs a pack, three messages and a commit.
const LAST_JOBS_MILLIS: f64 = 100.0;
/// A crash may cost the work in flight: it is kept below this share of the run.
const SHARE_IN_FLIGHT: u64 = 25;
/// For so many slots of an origin, one job more than there are slots is out, so that the next one lies ready when one ends. More of them
/// would have to be smaller, and each costs a pack, three messages and a commit.
const SLOTS_PER_SPARE_JOB: usize = 4;
/// How many jobs are out for an origin that may be worked by so many at a time.
pub(super) fn most_jobs(jobs_per_lane: usize) -> usize {
    jobs_per_lane + jobs_per_lane.div_ceil(SLOTS_PER_SPARE_JOB)
}

/// What is known of one origin.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    pub(super) ready: VecDeque<FetchItem>,
    /// What is to be judged without asking this origin.
    pub(super) candidates: VecDeque<Fetched>,
    pub(super) jobs: usize,
    /// Milliseconds one resource takes, smoothed.
    pub(super) millis_per_resource: Option<f64>,
}

impl LaneState {
    /// How many resources make a job: enough for a few seconds, few enough that a crash costs little of the run and
    /// that all slots stay busy to its end; `last` says that what is ready is all that is left.
    pub(super) fn job_size(&self, planned: u64, jobs_per_lane: usize, last: bool) -> usize {
        let by_time =
            self.millis_per_resource.map_or(LARGEST_JOB, |millis| (JOB_MILLIS / millis.max(0.001)) as usize);
        let by_share = planned / (SHARE_IN_FLIGHT * most_jobs(jobs_per_lane) as u64);
        let size = by_time.min(usize::try_from(by_share).unwrap_or(LARGEST_JOB).max(8)).clamp(1, LARGEST_JOB);
        if last { size.min(self.last_size(jobs_per_lane)) } else { size }
    }

    /// How many resources make one of the last jobs: half of what would be each slot's share. A single slot waits for none.
    fn last_size(&self, jobs_per_lane: usize) -> usize {
        let Some(millis) = self.millis_per_resource.filter(|_| jobs_per_lane > 1) else { return LARGEST_JOB };
        let worth_a_job = (LAST_JOBS_MILLIS / millis.max(0.001)).ceil() as usize;
        self.ready.len().div_ceil(2 * jobs_per_lane).max(worth_a_job)
    }

    /// How many of the first `most` resources go into one message; at least one.
    pub(super) fn fitting(&self, most: usize) -> usize {
        fitting(self.ready.iter().take(most).map(weight_of))
    }

    /// Takes as many candidates as go into one message.
    pub(super) fn take_candidates(&mut self) -> Vec<Fetched> {
        let size = fitting(self.candidates.iter().take(LARGEST_JOB).map(weight_of_candidate));
        self.candidates.drain(..size).collect()
    }

    /// Whether nothing is out for this origin, and nothing is ready.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs == 0 && self.ready.is_empty() && self.candidates.is_empty()
    }
}

/// How many of the first of these weights are not too heavy for one message; at least one.
fn fitting(weights: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0;
    let fits = |weight: &usize| {
        sum += weight;
        sum <= HEAVIEST_JOB
    };
    weights.take_while(fits).count().max(1)
}

/// Bytes of an item that the Source decides about, roughly.
fn weight_of(item: &FetchItem) -> usize {
    item.uri.as_str().len() + weight_of_declaration(&item.declaration) + weight_of_validators(&item.held)
}

fn weight_of_candidate(item: &Fetched) -> usize {
    let kept = match &item.result {
        FetchedResult::Kept(kept) => {
            let texts = [&kept.media_type, &kept.final_url].into_iter().flatten().map(String::len);
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
