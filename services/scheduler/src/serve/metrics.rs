//! What a scheduler counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use model::{ProblemReason, SourceId};
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
    problems: Family<ReasonLabel, Gauge>,
    /// What each Source adds to them.
    counted: Arc<Mutex<HashMap<SourceId, Problems>>>,
}

/// Problems by their reasons; those that are ignored have a name of their own.
type Problems = BTreeMap<&'static str, i64>;

/// Of problems that the operator ignores.
const IGNORED: &str = "ignored";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
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
        // Shown as zero before the first one ends: a rate does not see a number that begins with one.
        for end in ["in-sync", "with-problems", "failed"] {
            drop(counted.runs.get_or_create(&EndLabel { end }));
        }
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
            registry.register(
                "scheduler_problems",
                "Problems that are open in the Sources this scheduler looks after, since its last run of each",
                counted.problems.clone(),
            );
        });
        counted
    }

    pub(super) fn sources(&self, count: usize) {
        self.sources.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// What a run of a Source has left open.
    pub(super) fn problems(&self, source: &SourceId, open: &BTreeMap<ProblemReason, u64>, ignored: u64) {
        let open = open.iter().map(|(reason, count)| (reason.as_str(), *count)).chain([(IGNORED, ignored)]);
        self.replace(
            source,
            open.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX))).collect(),
        );
    }

    /// The Source is looked after by somebody else.
    pub(super) fn forget_problems(&self, source: &SourceId) {
        self.replace(source, Problems::new());
    }

    fn replace(&self, source: &SourceId, now: Problems) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for (&reason, &count) in &now {
            self.problems.get_or_create(&ReasonLabel { reason }).inc_by(count);
        }
        let before = match now.is_empty() {
            true => counted.remove(source),
            false => counted.insert(source.clone(), now),
        };
        for (reason, count) in before.unwrap_or_default() {
            self.problems.get_or_create(&ReasonLabel { reason }).dec_by(count);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_adds_what_its_last_run_left_open_and_takes_it_with_it() {
        let metrics = SchedulerMetrics::default();
        let shown = |reason| metrics.problems.get_or_create(&ReasonLabel { reason }).get();
        let [one, two]: [SourceId; 2] = ["one", "two"].map(|name| name.parse().expect("a source id"));
        let open = |count| BTreeMap::from([(ProblemReason::Timeout, count)]);
        metrics.problems(&one, &open(3), 0);
        metrics.problems(&two, &open(4), 2);
        assert_eq!((shown("timeout"), shown(IGNORED)), (7, 2));
        metrics.problems(&one, &open(1), 0);
        metrics.problems(&two, &BTreeMap::new(), 0);
        assert_eq!((shown("timeout"), shown(IGNORED)), (1, 0));
        metrics.forget_problems(&one);
        assert_eq!(shown("timeout"), 0);
    }
}
