//! One origin in the window: what is ready for it, how large its jobs are, and whether it is left alone.

use std::collections::VecDeque;

use jiff::Timestamp;
use model::FetchItem;

/// The most resources one job holds.
pub(super) const LARGEST_JOB: usize = 256;
/// The most bytes of URIs and declarations one job holds: its message, and those that follow from it, stay well below
/// what a bus takes.
pub(super) const HEAVIEST_JOB: usize = 256 * 1024;
/// A job should last about this long, in milliseconds.
const JOB_MILLIS: f64 = 2_000.0;
/// A crash may cost the work in flight: it is kept below this share of the run.
const SHARE_IN_FLIGHT: u64 = 50;
/// Attempts in a row without a connection after which an origin counts as down.
pub(super) const UNREACHABLE_IS_DOWN: u32 = 12;

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

/// What is known of one origin.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    pub(super) ready: VecDeque<FetchItem>,
    pub(super) jobs: usize,
    /// Milliseconds one resource takes, smoothed.
    pub(super) millis_per_resource: Option<f64>,
    pub(super) unreachable_in_a_row: u32,
    pub(super) resting: Option<Timestamp>,
}

impl LaneState {
    /// How many resources make a job: enough for a few seconds, few enough that a crash costs little of the run and
    /// that all slots stay busy to its end.
    pub(super) fn job_size(&self, planned: u64, jobs_per_lane: usize) -> usize {
        let by_time =
            self.millis_per_resource.map_or(LARGEST_JOB, |millis| (JOB_MILLIS / millis.max(0.001)) as usize);
        let by_share = planned / (SHARE_IN_FLIGHT * 2 * jobs_per_lane as u64);
        by_time.min(usize::try_from(by_share).unwrap_or(LARGEST_JOB).max(8)).clamp(1, LARGEST_JOB)
    }

    /// How many of the first `most` resources go into one message; at least one.
    pub(super) fn fitting(&self, most: usize) -> usize {
        let mut weight = 0;
        let fits = |item: &&FetchItem| {
            weight += weight_of(item);
            weight <= HEAVIEST_JOB
        };
        self.ready.iter().take(most).take_while(fits).count().max(1)
    }

    pub(super) fn down(&self) -> Option<Down> {
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
