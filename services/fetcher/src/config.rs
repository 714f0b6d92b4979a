//! What can be set.

use std::time::Duration;

use serde::Deserialize;

/// What can be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FetcherConfig {
    /// After so many seconds a job ends; resources it has not reached come back as deferred.
    pub job_seconds: u64,
    /// Bodies up to this many bytes travel in packs; 0 = each is an object of its own.
    pub small_bytes: usize,
    /// The largest body taken, in bytes; none = whatever comes.
    pub largest_bytes: Option<u64>,
    /// How often a broken body is taken up again where it stopped, within one job.
    pub resumes: u32,
}

impl Default for FetcherConfig {
    fn default() -> Self {
        Self { job_seconds: 20, small_bytes: 256 * 1024, largest_bytes: None, resumes: 3 }
    }
}

impl FetcherConfig {
    /// The time of a job.
    pub(crate) fn job_time(&self) -> Duration {
        Duration::from_secs(self.job_seconds)
    }
}
