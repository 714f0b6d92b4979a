//! Callbacks of hubs: verification of a subscription, and delivery of notifications. They are public and need no token.
//! A hub proves itself by the unguessable path and by its signature.
//!
//! The steps: `known` finds the subscription of a path, `verify` answers a verification request, `deliver` checks a
//! delivery and queues it. `hands` keeps one hub from using up all capacity, and `tally` reports the counts to the
//! fleet.

mod deliver;
mod hands;
mod known;
mod tally;
#[cfg(test)]
mod tests;
mod verdict;
mod verify;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ::bus::Bus;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use control::{Control, Hints, SourceSpec, Subscription, Subscriptions, WatchCache};
use fleet::Push;
use model::Clock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::GatewayMetrics;
use hands::Hands;
use tally::Tally;
pub(crate) use verdict::Verdict;

/// The path of a callback below the public address.
const PATH: &str = "/push/{subscription}/{part}";
/// Deliveries of one subscription that are received at a time. So a slow or hostile hub leaves capacity for the others.
const AT_A_TIME_EACH: usize = 8;

/// The most copies of a payload in memory while it is queued: as received, as text, as sent, and within a serialized
/// message. The buffer of that message doubles when it is full.
const COPIES: usize = 6;

/// Limits of the callbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
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

impl Limits {
    /// The most memory that deliveries take while they are received.
    pub(crate) fn memory_bytes(&self) -> usize {
        COPIES * self.body_bytes * self.at_a_time
    }
}

/// All callbacks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Callbacks(Arc<Parts>);

struct Parts {
    push: Push,
    subscriptions: Subscriptions,
    hints: Hints,
    view: WatchCache<Subscription>,
    sources: WatchCache<SourceSpec>,
    bus: Arc<dyn Bus>,
    limits: Limits,
    hands: Hands,
    tally: Tally,
    metrics: GatewayMetrics,
    clock: Arc<dyn Clock>,
}

impl Callbacks {
    pub(crate) fn new(
        push: Push,
        control: &Control,
        (view, sources): (WatchCache<Subscription>, WatchCache<SourceSpec>),
        bus: Arc<dyn Bus>,
        limits: Limits,
        metrics: GatewayMetrics,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let hands = Hands::new(limits.per_second, limits.at_a_time, AT_A_TIME_EACH);
        let tally = Tally::default();
        let (subscriptions, hints) = (control.subscriptions().clone(), control.hints().clone());
        Self(Arc::new(Parts {
            push,
            subscriptions,
            hints,
            view,
            sources,
            bus,
            limits,
            hands,
            tally,
            metrics,
            clock,
        }))
    }

    /// The single route of the callbacks. It needs no authentication.
    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route(PATH, get(verify::verify).post(deliver::deliver))
            .layer(from_fn_with_state(self.clone(), count))
            .with_state(self.clone())
    }

    /// Reports the counts to the fleet every few seconds. After `stop`, it reports the rest and ends.
    pub(crate) async fn keep_tally(self, stop: CancellationToken) {
        self.0.tally.keep(&self.0.subscriptions, &*self.0.clock, &stop).await;
    }
}

async fn count(State(callbacks): State<Callbacks>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or(PATH, MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    callbacks.0.metrics.count(&method, &route, response.status(), began.elapsed());
    response
}
