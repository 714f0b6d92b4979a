//! Compares the cost of two strategies: one request per resource, or one per package. Pure.

use std::time::Duration;

use serde::Serialize;

/// Assumed throughput of a connection in bytes per second, because it is unknown before bytes flow: 10 MB, a good
/// line.
const BYTES_PER_SECOND: u64 = 10_000_000;
/// Assumed latency if none was measured yet.
const WAIT: Duration = Duration::from_millis(100);

/// Up to this number, resources are requested one by one: reading the dump would cost as much.
pub const FEW_RESOURCES: u64 = 32;

/// Cost of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Cost {
    /// Requests.
    pub requests: u64,
    /// Bytes to receive; none if a length is not declared.
    pub bytes: Option<u64>,
}

/// Speed of a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time from a request to the first byte of its response.
    pub wait: Duration,
    /// Maximum number of concurrent requests.
    pub at_once: usize,
}

/// Measured latencies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latencies {
    total: Duration,
    answers: u32,
}

impl Latencies {
    /// Adds a latency.
    pub fn add(&mut self, wait: Duration) {
        self.total += wait;
        self.answers += 1;
    }

    /// Mean latency; an assumed one if none was measured yet.
    pub fn mean(self) -> Duration {
        self.measured().unwrap_or(WAIT)
    }

    /// Mean latency; none if none was measured yet.
    pub fn measured(self) -> Option<Duration> {
        self.total.checked_div(self.answers)
    }
}

impl Cost {
    /// No cost.
    pub const ZERO: Self = Self { requests: 0, bytes: Some(0) };

    /// Adds a request, with its number of bytes if known.
    pub fn add(&mut self, bytes: Option<u64>) {
        self.requests += 1;
        self.bytes = self.bytes.zip(bytes).map(|(all, one)| all.saturating_add(one));
    }

    /// Estimated duration; none if unknown.
    pub fn duration(self, pace: Pace) -> Option<Duration> {
        let waits = pace.wait.mul_f64(self.requests as f64 / pace.at_once.max(1) as f64);
        Some(waits + Duration::from_secs_f64(self.bytes? as f64 / BYTES_PER_SECOND as f64))
    }
}

/// Whether a dump brings the wanted resources sooner than the list. `share` is the wanted part of the listed
/// resources. If the list declares no lengths, its bytes are estimated as that part of the dump's. If in doubt, the
/// list is chosen.
pub fn is_dump_cheaper(dump: Cost, list: Cost, share: f64, pace: Pace) -> bool {
    let bytes = list.bytes.or_else(|| dump.bytes.map(|bytes| (bytes as f64 * share) as u64));
    let list = Cost { bytes, ..list };
    matches!((dump.duration(pace), list.duration(pace)), (Some(dump), Some(list)) if dump < list)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { wait: Duration::from_millis(200), at_once: 4 };

    fn cost(requests: u64, megabytes: u64) -> Cost {
        Cost { requests, bytes: Some(megabytes * 1_000_000) }
    }

    #[test]
    fn for_a_baseline_of_many_resources_packages_cost_less() {
        assert_eq!(cost(10_000, 100).duration(PACE), Some(Duration::from_secs(510)));
        assert!(is_dump_cheaper(cost(5, 100), cost(10_000, 100), 1.0, PACE));
    }

    #[test]
    fn for_a_few_missing_resources_a_whole_dump_costs_more() {
        assert!(!is_dump_cheaper(cost(5, 1_000), cost(100, 1), 0.01, PACE));
    }

    #[test]
    fn where_the_list_declares_no_lengths_its_share_of_the_dump_counts() {
        let list = Cost { requests: 100, bytes: None };
        assert!(!is_dump_cheaper(cost(1, 1_000), list, 0.01, PACE));
        assert!(is_dump_cheaper(cost(1, 1_000), list, 1.0, PACE));
    }

    #[test]
    fn a_dump_of_unknown_size_is_not_chosen() {
        assert!(!is_dump_cheaper(Cost { requests: 1, bytes: None }, cost(10_000, 1), 1.0, PACE));
    }

    #[test]
    fn before_any_answer_a_wait_is_assumed() {
        assert_eq!((Latencies::default().mean(), Latencies::default().measured()), (WAIT, None));
        let mut waits = Latencies::default();
        waits.add(Duration::from_millis(10));
        waits.add(Duration::from_millis(30));
        assert_eq!(waits.mean(), Duration::from_millis(20));
    }
}
