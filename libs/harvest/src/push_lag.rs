//! Push lag: from the time of a change until the change is settled.
//!
//! Only changes count that a notification alone reported and whose time is certain. A change that a list also
//! contains is planned from the list, and is not measured.

use jiff::Timestamp;
use model::Listing;
use prometheus_client::metrics::histogram::Histogram;

use crate::harvest::Harvest;

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
    fn held(&self, change: Timestamp, now: Timestamp) {
        self.0.observe(now.duration_since(change).as_secs_f64().max(0.0));
    }
}

impl Harvest {
    /// Records a change that the next batch settles, if a notification reported it.
    pub(crate) fn note_lag(&mut self, listing: &Listing) {
        if let Some(change) = listing.change_time
            && self.came_by_channel(&listing.document)
        {
            self.settling.push(change);
        }
    }

    /// Counts the recorded changes: they are durable.
    pub(crate) fn count_lags(&mut self) {
        if self.settling.is_empty() {
            return;
        }
        let now = self.clock.now();
        for change in self.settling.drain(..) {
            self.push_lag.held(change, now);
        }
    }
}
