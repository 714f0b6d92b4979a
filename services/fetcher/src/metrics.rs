//! Metrics of a fetcher.

use std::fmt;

use bus::worker::OriginShares;
use model::{FetchedResult, PackageOutcome, PackageResult, PatchUse, VerifyJob};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use service::{Active, Labelled, Metrics, ServiceInfo};

use crate::package_label;

/// From a job with a pack of its own to as many jobs as a process runs by default.
const JOBS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Metrics of a fetcher. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FetcherMetrics {
    jobs_active: Gauge,
    resources: Labelled<Counter>,
    packages: Labelled<Counter>,
    ranges: Labelled<Counter>,
    patches: Labelled<Counter>,
    patch_saved: Counter,
    requests: Counter,
    bytes: Counter,
    pack_jobs: Histogram,
}

impl Default for FetcherMetrics {
    /// Not exported.
    fn default() -> Self {
        Self::register(&Metrics::new(ServiceInfo { name: "fetcher", version: "" }))
    }
}

impl FetcherMetrics {
    /// Registers the metrics with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let resources = "Resources of finished fetch jobs by result";
        let packages = "Jobs about packages of dumps by result";
        let ranges = "Ranges of packages asked for beside a leading one, and of large resources, by result";
        let patches = "Resources with patches by what became of these";
        let saved = "Bytes of resources that were not received, because patches made them";
        let requests = "Requests sent to Sources for resources and packages, redirects included";
        let bytes = "Bytes of bitstreams and packages stored";
        let pack_jobs = "Jobs whose small bitstreams share a pack, of each pack stored";
        Self {
            jobs_active: metrics.add("fetch_jobs_active", "Fetch jobs being worked on", Gauge::default()),
            resources: metrics.add_labelled("fetch_resources", resources, "result", &[]),
            // Present from the start: a fleet may run without dumps for ever.
            packages: metrics.add_labelled("fetch_packages", packages, "result", &["stored"]),
            ranges: metrics.add_labelled("fetch_package_ranges", ranges, "result", &["accepted"]),
            patches: metrics.add_labelled("fetch_patches", patches, "result", &["applied"]),
            patch_saved: metrics.add("fetch_patch_saved_bytes", saved, Counter::default()),
            requests: metrics.add("fetch_requests", requests, Counter::default()),
            bytes: metrics.add("fetch_bytes", bytes, Counter::default()),
            pack_jobs: metrics.add("fetch_jobs_per_pack", pack_jobs, Histogram::new(JOBS)),
        }
    }

    /// Shows the jobs of slow origins, as of each scrape.
    pub(crate) fn show_slow_jobs(metrics: &Metrics, shares: OriginShares) {
        metrics.register(|registry| registry.register_collector(Box::new(SlowJobs(shares))));
    }

    pub(crate) fn begin(&self) -> Active {
        Active::begin(&self.jobs_active)
    }

    pub(crate) fn count_pack(&self, jobs: usize) {
        self.pack_jobs.observe(jobs as f64);
    }

    pub(crate) fn count_package(&self, done: &PackageOutcome) {
        self.requests.inc_by(done.requests);
        if let PackageResult::Stored(stored) = &done.result {
            self.bytes.inc_by(stored.computed.length());
        }
        self.packages.of(package_label::label(&done.result)).inc();
    }

    pub(crate) fn count_range(&self, result: &'static str, ranges: u64) {
        self.ranges.of(result).inc_by(ranges);
    }

    pub(crate) fn count(&self, done: &VerifyJob) {
        self.requests.inc_by(done.requests);
        for item in &done.items {
            if let Some(used) = item.patch.as_deref() {
                self.patches.of(used.as_str()).inc();
                if let PatchUse::Applied { saved, .. } = used {
                    self.patch_saved.inc_by(*saved);
                }
            }
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
            self.resources.of(result).inc();
        }
    }
}

/// Collector of the jobs of slow origins: an origin becomes slow while nothing happens.
#[derive(Debug)]
struct SlowJobs(OriginShares);

impl Collector for SlowJobs {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let jobs = ConstGauge::new(i64::try_from(self.0.slow_jobs()).unwrap_or(i64::MAX));
        let help = "Fetch jobs of origins whose requests take long";
        let metric = encoder.encode_descriptor("fetch_slow_jobs_active", help, None, MetricType::Gauge)?;
        jobs.encode(metric)
    }
}
