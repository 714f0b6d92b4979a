//! Counts of deliveries, written to the control store every few seconds. A write per delivery would cost more than the
//! delivery.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use control::{DeliveryStats, SubscriptionId, SubscriptionStep, Subscriptions};
use jiff::Timestamp;
use model::Clock;
use tokio_util::sync::CancellationToken;

use crate::verdicts::DeliveryVerdict as Verdict;

/// The interval of the reports.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Counts since the last report.
#[derive(Debug, Default)]
pub(super) struct DeliveryCounts(Mutex<HashMap<SubscriptionId, DeliveryStats>>);

impl DeliveryCounts {
    /// Counts a delivery.
    pub(super) fn count(&self, id: &SubscriptionId, verdict: Verdict, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let received = all.entry(id.clone()).or_default();
        match verdict {
            Verdict::Queued | Verdict::Hinted => {
                received.queued += 1;
                received.last_at = received.last_at.max(Some(now));
            }
            Verdict::Duplicate => received.last_at = received.last_at.max(Some(now)),
            _ => received.dropped += 1,
        }
    }

    /// Writes the counts every few seconds. After `stop`, it writes the rest and ends.
    pub(super) async fn report(
        &self,
        subscriptions: &Subscriptions,
        clock: &dyn Clock,
        stop: &CancellationToken,
    ) {
        loop {
            let is_over = tokio::select! {
                () = tokio::time::sleep(REPORT_EVERY) => false,
                () = stop.cancelled() => true,
            };
            self.write(subscriptions, clock.now()).await;
            if is_over {
                return;
            }
        }
    }

    /// Writes all counts. If a write fails, its counts are dropped: they only inform operators, and the metrics have
    /// them too.
    pub(super) async fn write(&self, subscriptions: &Subscriptions, now: Timestamp) {
        let counted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (id, received) in counted {
            if let Err(error) = subscriptions.step(&id, &SubscriptionStep::Count(received), now).await {
                tracing::debug!(subscription.id = %id, %error, "delivery counts could not be written");
            }
        }
    }
}
