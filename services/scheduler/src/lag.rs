//! How late what hubs tell is held: from the moment of a change to the moment at which it is settled.
//!
//! Measured is what a notification alone has told, where the change has a moment that is certain. What a list told as well is planned as the list
//! tells it, and is not measured.

use jiff::Timestamp;
use model::Listing;
use prometheus_client::metrics::histogram::Histogram;

use crate::harvest::Harvest;

const SECONDS: [f64; 14] =
    [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0];

/// How late what hubs tell is held, in seconds. Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub struct PushLag(Histogram);

impl Default for PushLag {
    fn default() -> Self {
        Self(Histogram::new(SECONDS))
    }
}

impl PushLag {
    /// What is counted, to be registered.
    pub fn histogram(&self) -> Histogram {
        self.0.clone()
    }

    /// Counts a change that is held now. A Source's clock may be ahead of ours.
    fn held(&self, change: Timestamp, now: Timestamp) {
        self.0.observe(now.duration_since(change).as_secs_f64().max(0.0));
    }
}

impl Harvest {
    /// Notes a change that is settled with the next batch, if a notification told it.
    pub(crate) fn note_lag(&mut self, listing: &Listing) {
        if let Some(change) = listing.change_time
            && self.came_by_channel(&listing.document)
        {
            self.settling.push(change);
        }
    }

    /// What was noted is durable.
    pub(crate) fn count_lags(&mut self) {
        if self.settling.is_empty() {
            return;
        }
        let now = self.clock.now();
        for change in self.settling.drain(..) {
            self.options.channels.lag.held(change, now);
        }
    }
}
