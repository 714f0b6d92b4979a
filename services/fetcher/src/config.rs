//! Settings of fetch jobs.

use std::time::Duration;

use serde::Deserialize;

/// Settings of fetch jobs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FetcherConfig {
    /// Seconds after which a job ends; resources not reached come back as deferred.
    pub max_job_seconds: u64,
    /// Bodies up to this many bytes go into packs; 0 = each is an object of its own.
    pub pack_threshold_bytes: usize,
    /// Maximum size of a resource in bytes, unless its Source has another limit.
    pub max_body_bytes: u64,
    /// Declared length from which a resource is received in parts that survive this process, and in parallel ranges.
    pub large_body_bytes: u64,
    /// Maximum parallel ranges of such a resource, if the server supports ranges and the origin's limit leaves spare
    /// permits that no other job wants; 1 = never more than one.
    pub max_body_ranges: usize,
    /// Maximum bytes of each such range, 1 MiB at least. Those of a slow server are shorter. Twice as many ranges as
    /// are open may wait on the disk.
    pub range_bytes: u64,
    /// How often an interrupted body is resumed where it stopped, within one job.
    pub max_resumes: u32,
    /// Seconds after which a job that receives a package or a large resource ends, and another continues it. This is long enough that a
    /// new request costs little in comparison, and short enough that the Sources of an origin take turns.
    pub max_package_seconds: u64,
    /// Maximum parallel ranges of a package, if the server supports ranges and the origin's limit leaves spare
    /// permits that no other job wants; 1 = never more than one.
    pub max_package_ranges: usize,
    /// Maximum size of a package, in bytes. Beyond about 70 GiB this makes the parts larger in which packages are
    /// received, because S3 allows no more than 10,000 of them.
    pub max_package_bytes: u64,
}

impl Default for FetcherConfig {
    fn default() -> Self {
        Self {
            max_job_seconds: 20,
            pack_threshold_bytes: 256 * 1024,
            max_body_bytes: 16 * 1024 * 1024 * 1024,
            large_body_bytes: 128 * 1024 * 1024,
            max_body_ranges: 8,
            range_bytes: 32 * 1024 * 1024,
            max_resumes: 3,
            max_package_seconds: 60,
            max_package_ranges: 4,
            max_package_bytes: 64 * 1024 * 1024 * 1024,
        }
    }
}

impl FetcherConfig {
    /// Time limit of a job.
    pub(crate) fn job_time(&self) -> Duration {
        Duration::from_secs(self.max_job_seconds)
    }

    /// Time limit of a job that receives a package.
    pub(crate) fn package_time(&self) -> Duration {
        Duration::from_secs(self.max_package_seconds)
    }
}
