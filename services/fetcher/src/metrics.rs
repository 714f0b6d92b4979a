//! Metrics of a fetcher.

use model::{FetchedResult, PackageOutcome, PackageResult, VerifyJob};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use service::Metrics;

use crate::package_label;

/// From a job with a pack of its own to as many jobs as a process runs by default.
const JOBS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Metrics of a fetcher. Cheap to clone; not exported until registered.
#[derive(Debug, Clone)]
pub struct FetcherMetrics {
    jobs_active: Gauge,
    resources: Family<ResultLabel, Counter>,
    packages: Family<ResultLabel, Counter>,
    ranges: Family<ResultLabel, Counter>,
    requests: Counter,
    bytes: Counter,
    pack_jobs: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// An active job, until it is dropped.
pub(crate) struct InHand(Gauge);

impl Default for FetcherMetrics {
    fn default() -> Self {
        Self {
            jobs_active: Gauge::default(),
            resources: Family::default(),
            packages: Family::default(),
            ranges: Family::default(),
            requests: Counter::default(),
            bytes: Counter::default(),
            pack_jobs: Histogram::new(JOBS),
        }
    }
}

impl FetcherMetrics {
    /// Registers the metrics with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let counted = Self::default();
        // Present from the start: a fleet may run without dumps for ever.
        drop(counted.packages.get_or_create(&ResultLabel { result: "stored" }));
        drop(counted.ranges.get_or_create(&ResultLabel { result: "accepted" }));
        metrics.register(|registry| {
            registry.register("fetch_jobs_active", "Fetch jobs being worked on", counted.jobs_active.clone());
            registry.register(
                "fetch_resources",
                "Resources of finished fetch jobs by result",
                counted.resources.clone(),
            );
            registry.register(
                "fetch_packages",
                "Jobs about packages of dumps by result",
                counted.packages.clone(),
            );
            registry.register(
                "fetch_package_ranges",
                "Ranges of packages asked for beside a leading one by result",
                counted.ranges.clone(),
            );
            registry.register(
                "fetch_requests",
                "Requests sent to Sources for resources and packages, redirects included",
                counted.requests.clone(),
            );
            registry.register(
                "fetch_bytes",
                "Bytes of bitstreams and packages stored",
                counted.bytes.clone(),
            );
            registry.register(
                "fetch_jobs_per_pack",
                "Jobs whose small bitstreams share a pack, of each pack stored",
                counted.pack_jobs.clone(),
            );
        });
        counted
    }

    pub(crate) fn begin(&self) -> InHand {
        self.jobs_active.inc();
        InHand(self.jobs_active.clone())
    }

    pub(crate) fn count_pack(&self, jobs: usize) {
        self.pack_jobs.observe(jobs as f64);
    }

    pub(crate) fn count_package(&self, done: &PackageOutcome) {
        self.requests.inc_by(done.requests);
        if let PackageResult::Stored(stored) = &done.result {
            self.bytes.inc_by(stored.computed.length());
        }
        self.packages.get_or_create(&ResultLabel { result: package_label::label(&done.result) }).inc();
    }

    pub(crate) fn count_range(&self, result: &'static str, ranges: u64) {
        self.ranges.get_or_create(&ResultLabel { result }).inc_by(ranges);
    }

    pub(crate) fn count(&self, done: &VerifyJob) {
        self.requests.inc_by(done.requests);
        for item in &done.items {
            let result = match &item.result {
                FetchedResult::Stored(stored) => {
                    self.bytes.inc_by(stored.computed.length());
                    "stored"
                }
                FetchedResult::NotModified => "not-modified",
                FetchedResult::Kept(_) => "kept",
                FetchedResult::Deferred => "deferred",
                FetchedResult::Failed(failure) => failure.reason.as_str(),
            };
            self.resources.get_or_create(&ResultLabel { result }).inc();
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.dec();
    }
}
