//! Callbacks of hubs: verification of a subscription, and delivery of notifications. They are public and need no token.
//! A hub proves itself by the unguessable path and by its signature.
//!
//! The steps: `callback_lookup` finds the subscription of a path, `verify` answers a verification request, `deliver`
//! checks a delivery and queues it. `delivery_limiter` keeps one hub from using up all capacity, and `delivery_counts`
//! reports the counts to the fleet.

mod callback_lookup;
mod deliver;
mod delivery_counts;
mod delivery_limiter;
mod verify;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ::bus::Bus;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use control::{Hints, SourceSpec, Subscription, Subscriptions, WatchCache};
use fleet::Push;
use model::Clock;
use tokio_util::sync::CancellationToken;

use crate::metrics::{GatewayMetrics, Measured};
use delivery_counts::DeliveryCounts;
use delivery_limiter::DeliveryLimiter;

/// The path of a callback below the public address.
const PATH: &str = "/push/{subscription}/{part}";
/// The most copies of a payload in memory while it is queued: as received, as text, as sent, and within a serialized
/// message. The buffer of that message doubles when it is full.
const COPIES: usize = 6;

/// Limits of the callbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryLimits {
    /// The longest payload, in bytes.
    pub(crate) body_bytes: usize,
    /// The time limit for the payload.
    pub(crate) body_time: Duration,
    /// Requests per second at one callback, with bursts of twice as many.
    pub(crate) per_second: NonZeroU32,
    /// Payloads that are processed at a time.
    pub(crate) at_a_time: usize,
    /// The time limit for queueing a payload.
    pub(crate) queue_time: Duration,
}

impl DeliveryLimits {
    /// The most memory that deliveries take while they are received.
    pub(crate) fn memory_bytes(&self) -> usize {
        COPIES * self.body_bytes * self.at_a_time
    }
}

/// All callbacks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Callbacks(Arc<Parts>);

/// What the callbacks need of the fleet.
pub(crate) struct Fleet {
    pub(crate) push: Push,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) hints: Hints,
    pub(crate) view: WatchCache<Subscription>,
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
}

struct Parts {
    fleet: Fleet,
    limits: DeliveryLimits,
    limiter: DeliveryLimiter,
    counts: DeliveryCounts,
    metrics: GatewayMetrics,
}

impl Callbacks {
    pub(crate) fn new(fleet: Fleet, limits: DeliveryLimits, metrics: GatewayMetrics) -> Self {
        let limiter = DeliveryLimiter::new(limits.per_second, limits.at_a_time);
        let counts = DeliveryCounts::default();
        Self(Arc::new(Parts { fleet, limits, limiter, counts, metrics }))
    }

    /// The single route of the callbacks. It needs no authentication.
    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route(PATH, get(verify::verify).post(deliver::deliver))
            .layer(from_fn_with_state(self.clone(), count))
            .with_state(self.clone())
    }

    /// Reports the counts to the fleet every few seconds. After `stop`, it reports the rest and ends.
    pub(crate) async fn report_counts(self, stop: CancellationToken) {
        let fleet = &self.0.fleet;
        self.0.counts.report(&fleet.subscriptions, &*fleet.clock, &stop).await;
    }
}

async fn count(State(callbacks): State<Callbacks>, request: Request, next: Next) -> Response {
    let measured = Measured::begin(&request);
    let response = next.run(request).await;
    measured.count(&callbacks.0.metrics, response.status());
    response
}

#[cfg(test)]
mod tests;
