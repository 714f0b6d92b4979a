//! Metrics that are created and registered in one step.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Metric;

use crate::Metrics;

/// A metric for each value of a label. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Labelled<M> {
    label: &'static str,
    family: Family<[(&'static str, &'static str); 1], M>,
}

/// One more in a gauge, until it is dropped.
#[derive(Debug)]
pub struct Active(Gauge);

impl Metrics {
    /// Registers a metric under the prefix `thresher_`, and returns its handle.
    pub fn add<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        self.register(|registry| registry.register(name, help, metric.clone()));
        metric
    }

    /// Creates and registers a metric with a label. Those of `values` are exported before they change, because `rate`
    /// ignores a series that begins with one.
    pub fn add_labelled<M>(
        &self,
        name: &str,
        help: &str,
        label: &'static str,
        values: &[&'static str],
    ) -> Labelled<M>
    where
        M: Metric + Clone + Default,
        Family<[(&'static str, &'static str); 1], M>: Metric,
    {
        let labelled = Labelled { label, family: self.add(name, help, Family::default()) };
        values.iter().for_each(|value| drop(labelled.of(value)));
        labelled
    }
}

impl<M: Clone + Default> Labelled<M> {
    /// The metric of a value.
    pub fn of(&self, value: &'static str) -> M {
        self.family.get_or_create_owned(&[(self.label, value)])
    }
}

impl Active {
    /// Counts one more.
    pub fn begin(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;
    use crate::ServiceInfo;

    #[test]
    fn labelled_metrics_are_exported_from_the_start_and_gauges_follow_what_is_active() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let runs: Labelled<Counter> = metrics.add_labelled("runs", "Runs by result", "result", &["failed"]);
        runs.of("in-sync").inc_by(2);
        let active: Gauge = metrics.add("runs_active", "Runs", Gauge::default());
        let first = Active::begin(&active);
        let second = Active::begin(&active);
        drop(first);
        let text = metrics.encode();
        for line in [
            "thresher_runs_total{result=\"failed\"} 0",
            "thresher_runs_total{result=\"in-sync\"} 2",
            "thresher_runs_active 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        drop(second);
        assert_eq!(active.get(), 0);
    }
}
