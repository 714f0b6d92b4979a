//! The callbacks: where hubs ask whether a subscription was meant, and deliver what it brings. Strangers reach them, without a token; what
//! lets them in is that they know where to go, and what they sign.
//!
//! The story: `known` finds the subscription of a path, `verify` answers a hub's question, `deliver` judges a delivery and queues it; `hands`
//! keeps any one hub from taking all there is, and `tally` tells the fleet what came.

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
use control::{Control, Hints, SourceSpec, Subscription, Subscriptions, View};
use fleet::Push;
use model::Clock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::GatewayMetrics;
use hands::Hands;
use tally::Tally;
pub(crate) use verdict::Verdict;

/// Where a callback lies below the public address.
const PATH: &str = "/push/{subscription}/{part}";
/// Deliveries of one subscription that are received at a time: one hub that is slow, or hostile, leaves room for the others.
const AT_A_TIME_EACH: usize = 8;

/// How often a payload is held while it is queued, at most: as it came, as text, within a message that is written, whose room is doubled when it is full, and as what is
/// sent.
const COPIES: usize = 6;

/// What the callbacks are told of themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest payload, in bytes.
    pub(crate) body_bytes: usize,
    /// How long it may take to arrive.
    pub(crate) body_time: Duration,
    /// Requests in a second at one callback; twice as many may come at once.
    pub(crate) per_second: NonZeroU32,
    /// Payloads in hand at a time.
    pub(crate) at_a_time: usize,
    /// How long a payload may take to be queued.
    pub(crate) queue_time: Duration,
}

impl Limits {
    /// The most memory that deliveries take while they are taken in.
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
    view: View<Subscription>,
    sources: View<SourceSpec>,
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
        (view, sources): (View<Subscription>, View<SourceSpec>),
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

    /// Their routes: one, and no door before it.
    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route(PATH, get(verify::verify).post(deliver::deliver))
            .layer(from_fn_with_state(self.clone(), count))
            .with_state(self.clone())
    }

    /// Tells the fleet every few seconds what came. Ends with `stop`, having told the rest.
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
