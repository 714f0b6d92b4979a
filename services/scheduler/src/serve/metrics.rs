//! What a scheduler counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use service::Metrics;

/// What a scheduler counts. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct SchedulerMetrics {
    sources: Gauge,
    runs_in_hand: Gauge,
    runs: Family<EndLabel, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabel {
    end: &'static str,
}

/// A run in hand, until it is dropped.
pub(super) struct InHand(Gauge);

impl SchedulerMetrics {
    /// Registers them with a service.
    pub(super) fn register(metrics: &Metrics) -> Self {
        let counted = Self::default();
        metrics.register(|registry| {
            registry.register(
                "scheduler_sources",
                "Sources this scheduler looks after",
                counted.sources.clone(),
            );
            registry.register(
                "scheduler_runs_in_hand",
                "Runs this scheduler works on",
                counted.runs_in_hand.clone(),
            );
            registry.register(
                "scheduler_runs",
                "Runs this scheduler ended, by their end",
                counted.runs.clone(),
            );
        });
        counted
    }

    pub(super) fn sources(&self, count: usize) {
        self.sources.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(super) fn begin(&self) -> InHand {
        self.runs_in_hand.inc();
        InHand(self.runs_in_hand.clone())
    }

    pub(super) fn ended(&self, end: &'static str) {
        self.runs.get_or_create(&EndLabel { end }).inc();
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.dec();
    }
}
