//! Readiness: the parts of a service report when they can work.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// Whether a service is ready: once each of its parts has released its latch, and until it drains. Cheap to
/// clone.
///
/// A part without a latch is not waited for. A service without any latch is not ready yet.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// The latches that keep the service from being ready, in the order in which they were taken.
    held: BTreeMap<u64, Waiting>,
    any: bool,
    draining: bool,
}

/// A part that keeps a service from being ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The part of the service that waits.
    pub part: &'static str,
    /// The reason, as text.
    pub reason: String,
}

/// Keeps a service from being ready until it is released. If a failing part drops its latch, it stays closed.
#[derive(Debug)]
pub struct Latch {
    readiness: Readiness,
    number: u64,
}

impl Readiness {
    /// Keeps the service from being ready until `part` releases the latch; `reason` says what it waits for.
    pub fn latch(&self, part: &'static str, reason: &str) -> Latch {
        let mut state = self.state();
        state.any = true;
        state.next += 1;
        let number = state.next;
        state.held.insert(number, Waiting { part, reason: reason.to_owned() });
        Latch { readiness: self.clone(), number }
    }

    /// Starts draining: no new work should be sent here.
    pub fn drain(&self) {
        self.state().draining = true;
    }

    /// The parts that keep the service from being ready, in the order in which their latches were taken. A
    /// part may have several.
    pub fn waiting_for(&self) -> Vec<Waiting> {
        let state = self.state();
        let mut waiting: Vec<Waiting> = state.held.values().cloned().collect();
        let service = |reason: &str| Waiting { part: "service", reason: reason.to_owned() };
        if state.draining {
            waiting.push(service("it drains and is about to stop"));
        } else if !state.any {
            waiting.push(service("it has not started yet"));
        }
        waiting
    }

    /// Whether the service is ready.
    pub fn is_ready(&self) -> bool {
        self.waiting_for().is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is a single assignment or insertion: the state is consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latch {
    /// The part waits for something else now.
    pub fn waits_for(&self, reason: &str) {
        if let Some(held) = self.readiness.state().held.get_mut(&self.number) {
            held.reason = reason.to_owned();
        }
    }

    /// The part is ready.
    pub fn release(self) {
        self.readiness.state().held.remove(&self.number);
    }
}

/// `part: reason`, as `/readyz` prints it.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.reason)
    }
}

/// The content of `/readyz` for alerts: the reasons are there, the parts here.
impl Collector for Readiness {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let waiting_for = self.waiting_for();
        let help = "Whether the service is ready";
        let kind = MetricType::Gauge;
        let ready = ConstGauge::new(u64::from(waiting_for.is_empty()));
        ready.encode(encoder.encode_descriptor("service_ready", help, None, kind)?)?;
        let help = "The parts that the service waits for";
        let mut family = encoder.encode_descriptor("service_unready", help, None, kind)?;
        let parts: BTreeSet<&str> = waiting_for.iter().map(|waiting| waiting.part).collect();
        for part in parts {
            ConstGauge::new(1_u64).encode(family.encode_family(&[("component", part)])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(readiness: &Readiness) -> Vec<String> {
        readiness.waiting_for().iter().map(Waiting::to_string).collect()
    }

    #[test]
    fn ready_only_after_every_part_and_never_before_the_first() {
        let readiness = Readiness::default();
        assert!(!readiness.is_ready());
        let catalog = readiness.latch("catalog", "opening");
        let bus = readiness.latch("bus", "connecting");
        assert_eq!(said(&readiness), ["catalog: opening", "bus: connecting"]);
        catalog.release();
        bus.waits_for("the stream");
        assert_eq!(said(&readiness), ["bus: the stream"]);
        bus.release();
        assert!(readiness.is_ready());
    }

    #[test]
    fn dropped_latch_stays_closed() {
        let readiness = Readiness::default();
        drop(readiness.latch("catalog", "opening"));
        assert_eq!(said(&readiness), ["catalog: opening"]);
    }

    #[test]
    fn draining_service_is_not_ready_any_more() {
        let readiness = Readiness::default();
        readiness.latch("all", "starting").release();
        assert!(readiness.is_ready());
        readiness.drain();
        assert!(!readiness.is_ready());
    }

    #[test]
    fn metrics_say_whether_it_is_ready_and_name_each_part_that_is_not_once() {
        let (readiness, metrics) =
            (Readiness::default(), crate::Metrics::new(crate::ServiceInfo { name: "test", version: "0" }));
        metrics.add_readiness(&readiness);
        let lines = || -> Vec<String> {
            let all = metrics.encode();
            all.lines().filter(|line| line.starts_with("thresher_service_")).map(str::to_owned).collect()
        };
        assert_eq!(
            lines(),
            ["thresher_service_ready 0", "thresher_service_unready{component=\"service\"} 1"]
        );
        let latches = ["bus", "bus", "store"].map(|part| readiness.latch(part, "connecting"));
        assert_eq!(
            lines(),
            [
                "thresher_service_ready 0",
                "thresher_service_unready{component=\"bus\"} 1",
                "thresher_service_unready{component=\"store\"} 1",
            ]
        );
        for latch in latches {
            latch.release();
        }
        assert_eq!(lines(), ["thresher_service_ready 1"]);
    }
}
