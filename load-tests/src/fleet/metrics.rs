//! Values in the metrics that a service reports.

/// The sum of a counter's samples with `label`.
pub(super) fn counter(metrics: &str, metric: &str, label: &str) -> u64 {
    let samples = metrics.lines().filter(|line| line.contains(label)).filter_map(|line| {
        // The name is followed by the labels.
        let rest = line.strip_prefix(metric)?.strip_prefix("_total")?;
        rest.rsplit_once(' ')?.1.parse::<u64>().ok()
    });
    samples.sum()
}

/// The sum of a gauge's samples. `metric` is its name without the prefix of all of them.
pub(super) fn gauge(metrics: &str, metric: &str) -> u64 {
    let name = format!("thresher_{metric}");
    let samples = metrics.lines().filter(|line| line.strip_prefix(&name).is_some_and(is_sample));
    samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

/// Whether a line is a sample of the metric whose name was before this.
fn is_sample(rest: &str) -> bool {
    rest.starts_with(['{', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# TYPE unpack_members counter\nunpack_members_total{verdict=\"digest\"} 40\n\
        unpack_members_total{verdict=\"no-member\"} 2\nunpack_members_else_total 7\nunpack_total 1\n\
        thresher_sources 3\nthresher_sources_stale 1\n";

    #[test]
    fn the_samples_of_a_metric_are_added_up_and_those_of_others_are_not() {
        assert_eq!(counter(METRICS, "unpack_members", ""), 42);
        assert_eq!(counter(METRICS, "unpack", ""), 1);
        assert_eq!(gauge(METRICS, "sources"), 3);
    }

    #[test]
    fn with_a_label_only_its_samples_count() {
        assert_eq!(counter(METRICS, "unpack_members", "verdict=\"digest\""), 40);
    }
}
