//! Memory of a process: its use and its budget.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tikv_jemallocator::Jemalloc;

/// The allocator of every process with this frame. Stages pass allocations to each other, so most memory is
/// freed on another thread than it was allocated on. With the C library's allocator threads would then wait
/// for each other's locks.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The memory budget of the process as metrics, from its configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<(&'static str, u64)>>>);

impl Memory {
    /// Adds a part of the memory budget.
    pub(crate) fn bound(&self, part: &'static str, bytes: u64) {
        // A single insertion: the list is consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((part, bytes));
    }
}

impl Collector for Memory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "The most that a part of the process takes, by its configuration";
        let mut family = encoder.encode_descriptor("memory_budget_bytes", help, None, MetricType::Gauge)?;
        for (part, bytes) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            ConstGauge::new(*bytes).encode(family.encode_family(&[("component", *part)])?)?;
        }
        Ok(())
    }
}

/// The resident bytes of the process as a metric, read on request. Its name is the standard one, without a prefix.
#[derive(Debug)]
pub(crate) struct Resident;

impl Collector for Resident {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if let Some(bytes) = resident_bytes() {
            let help = "Memory that the process takes";
            let kind = MetricType::Gauge;
            let gauge = encoder.encode_descriptor("process_resident_memory_bytes", help, None, kind)?;
            ConstGauge::new(bytes).encode(gauge)?;
        }
        Ok(())
    }
}

/// The resident set of this process, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use crate::{Metrics, ServiceInfo};

    #[test]
    fn what_is_taken_and_what_is_bounded_stand_side_by_side() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        metrics.bound_memory("packs", 64);
        metrics.bound_memory("bodies", 8);
        let text = metrics.encode();
        assert!(text.contains("thresher_memory_budget_bytes{component=\"packs\"} 64"), "{text}");
        assert!(text.contains("thresher_memory_budget_bytes{component=\"bodies\"} 8"), "{text}");
        let resident = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
        assert!(resident.unwrap().parse::<u64>().unwrap() > 100_000, "{text}");
    }
}
