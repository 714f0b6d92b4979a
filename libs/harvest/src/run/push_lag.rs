//! Push lag: from the time of a change until the change is settled.
//!
//! Only changes count that a notification alone reported and whose time is certain. A change that a list also
//! contains is planned from the list, and is not measured.

use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;

const SECONDS: [f64; 14] =
    [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0];

/// Push lag, in seconds. Cheap to clone; all clones share one histogram.
#[derive(Debug, Clone)]
pub struct PushLag(Histogram);

impl Default for PushLag {
    fn default() -> Self {
        Self(Histogram::new(SECONDS))
    }
}

impl PushLag {
    /// The histogram, for registration.
    pub fn histogram(&self) -> Histogram {
        self.0.clone()
    }

    /// Counts a change that is now stored. A Source's clock may run ahead of the local clock.
    pub(crate) fn observe(&self, change: Timestamp, now: Timestamp) {
        self.0.observe(now.duration_since(change).as_secs_f64().max(0.0));
    }
}
