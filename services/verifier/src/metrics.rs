//! Metrics of a verifier.

use model::{Assurance, OutcomeResult, Outcomes};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use service::Metrics;

/// Metrics of a verifier. Cheap to clone; not exported until registered.
#[derive(Debug, Clone, Default)]
pub struct VerifierMetrics {
    jobs: Counter,
    resources: Family<VerdictLabel, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabel {
    verdict: &'static str,
}

impl VerifierMetrics {
    /// Registers the metrics with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let counted = Self::default();
        metrics.register(|registry| {
            registry.register("verify_jobs", "Verify jobs finished", counted.jobs.clone());
            registry.register(
                "verify_resources",
                "Resources of finished verify jobs by verdict",
                counted.resources.clone(),
            );
        });
        counted
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
            self.resources.get_or_create(&VerdictLabel { verdict }).inc();
        }
    }
}
