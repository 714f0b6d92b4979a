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
    /// The largest resource taken, in bytes, where its Source says nothing else.
    pub largest_bytes: u64,
    /// How often a broken body is taken up again where it stopped, within one job.
    pub resumes: u32,
    /// After so many seconds a job that receives a package ends, and another goes on with it: long enough that what a new request
    /// costs is nothing beside it, short enough that the Sources of an origin take turns.
    pub package_seconds: u64,
    /// The most ranges of a package that are asked for at a time, where the server gives ranges and the origin's limit leaves places
    /// that nobody else wants; 1 = never more than one.
    pub package_ranges_at_a_time: usize,
    /// The largest package taken, in bytes. Beyond about 70 GiB it makes the parts larger in which packages are received, since S3 takes
    /// no more than 10,000 of them.
    pub largest_package_bytes: u64,
}

impl Default for FetcherConfig {
    fn default() -> Self {
        Self {
            job_seconds: 20,
            small_bytes: 256 * 1024,
            largest_bytes: 16 * 1024 * 1024 * 1024,
            resumes: 3,
            package_seconds: 60,
            package_ranges_at_a_time: 4,
            largest_package_bytes: 64 * 1024 * 1024 * 1024,
        }
    }
}

impl FetcherConfig {
    /// The time of a job.
    pub(crate) fn job_time(&self) -> Duration {
        Duration::from_secs(self.job_seconds)
    }

    /// The time of a job that receives a package.
    pub(crate) fn package_time(&self) -> Duration {
        Duration::from_secs(self.package_seconds)
    }
}
