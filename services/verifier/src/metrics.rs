//! Metrics of a verifier.

use model::{Assurance, OutcomeResult, Outcomes};
use prometheus_client::metrics::counter::Counter;
use service::{Labelled, Metrics, ServiceInfo};

/// Metrics of a verifier. Cheap to clone.
#[derive(Debug, Clone)]
pub struct VerifierMetrics {
    jobs: Counter,
    resources: Labelled<Counter>,
}

impl Default for VerifierMetrics {
    /// Not exported.
    fn default() -> Self {
        Self::register(&Metrics::new(ServiceInfo { name: "verifier", version: "" }))
    }
}

impl VerifierMetrics {
    /// Registers the metrics with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let help = "Resources of finished verify jobs by verdict";
        Self {
            jobs: metrics.add("verify_jobs", "Verify jobs finished", Counter::default()),
            resources: metrics.add_labelled("verify_resources", help, "verdict", &[]),
        }
    }

    pub(crate) fn count(&self, judged: &Outcomes) {
        self.jobs.inc();
        for item in &judged.items {
            let verdict = match &item.result {
                OutcomeResult::Verified { assurance: Assurance::Digest, .. } => "digest",
                OutcomeResult::Verified { assurance: Assurance::Length, .. } => "length",
                OutcomeResult::Verified { assurance: Assurance::None, .. } => "nothing-declared",
                OutcomeResult::NotModified => "not-modified",
                OutcomeResult::Deferred => "deferred",
                OutcomeResult::Failed(failure) => failure.reason.as_str(),
            };
            self.resources.of(verdict).inc();
        }
    }
}
