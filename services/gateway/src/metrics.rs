//! Metrics of the gateway.

use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use service::{Metrics, status_class};
use tokio::time::Instant;

use crate::verdicts::{DeliveryVerdict, NotificationVerdict};
use crate::wrong_tokens::TokenEndpoint;

/// Buckets from the time of a lookup to that of a report over millions of resources.
const SECONDS: [f64; 9] = [0.002, 0.005, 0.02, 0.05, 0.2, 0.5, 2.0, 5.0, 30.0];

/// The route label of requests to paths without a route. Their number is unbounded.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Metrics of the gateway. Cheap to clone. No scrape sees them until they are registered.
#[derive(Debug, Clone)]
pub struct GatewayMetrics {
    requests: Family<RequestLabel, Counter>,
    seconds: Family<[(&'static str, String); 1], Histogram>,
    notifications: Family<Label, Counter>,
    deliveries: Family<Label, Counter>,
    wrong_tokens: Family<Label, Counter>,
    connections: Gauge,
    connections_full: Counter,
    connections_refused: Counter,
}

/// Counts an open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A request under way: what the metrics count at its end.
#[derive(Debug)]
pub(crate) struct Measured {
    began: Instant,
    method: Method,
    matched: Option<MatchedPath>,
}

impl Measured {
    pub(crate) fn begin(request: &Request) -> Self {
        let matched = request.extensions().get().cloned();
        Self { began: Instant::now(), method: request.method().clone(), matched }
    }

    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// The template of the route, or [`UNMATCHED`].
    pub(crate) fn route(&self) -> &str {
        self.matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str)
    }

    pub(crate) fn count(self, metrics: &GatewayMetrics, status: StatusCode) {
        metrics.count(&self.method, self.route(), status, self.began.elapsed());
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    route: String,
    method: &'static str,
    status: &'static str,
}

/// One label with a fixed set of values.
type Label = [(&'static str, &'static str); 1];

impl Default for GatewayMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            notifications: Family::default(),
            deliveries: Family::default(),
            wrong_tokens: Family::default(),
            connections: Gauge::default(),
            connections_full: Counter::default(),
            connections_refused: Counter::default(),
        }
    }
}

impl GatewayMetrics {
    /// Registers the metrics with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let counted = Self::default();
        // Export a zero before the first event, because `rate` ignores a series that begins with one.
        for (_, verdict) in DeliveryVerdict::ALL {
            drop(counted.deliveries.get_or_create(&[("verdict", verdict)]));
        }
        for (_, verdict) in NotificationVerdict::ALL {
            drop(counted.notifications.get_or_create(&[("verdict", verdict)]));
        }
        for endpoint in TokenEndpoint::ALL {
            drop(counted.wrong_tokens.get_or_create(&[("door", endpoint.as_str())]));
        }
        metrics.register(|registry| {
            let tokens = "Tokens that are not known, by where they were shown";
            registry.register("gateway_wrong_tokens", tokens, counted.wrong_tokens.clone());
            let deliveries = "Deliveries of hubs by what became of them";
            registry.register("gateway_deliveries", deliveries, counted.deliveries.clone());
            let notifications = "Requests to post a notification by verdict";
            registry.register("gateway_notifications", notifications, counted.notifications.clone());
            let open = "Connections that are open";
            registry.register("gateway_connections", open, counted.connections.clone());
            let full = "Times that all connections were open and the next one had to wait";
            registry.register("gateway_connections_full", full, counted.connections_full.clone());
            let refused =
                "Connections, and requests through proxies, of clients that had as many as they may have";
            registry.register("gateway_connections_refused", refused, counted.connections_refused.clone());
            let requests = "Requests answered by route, method and class of status";
            registry.register("gateway_requests", requests, counted.requests.clone());
            let seconds = "Time until an answer began by route";
            registry.register("gateway_request_seconds", seconds, counted.seconds.clone());
        });
        counted
    }

    /// Counts a connection as open.
    pub(crate) fn connection(&self) -> OpenConnection {
        self.connections.inc();
        OpenConnection(self.connections.clone())
    }

    /// Counts that all connections were in use.
    pub(crate) fn connections_full(&self) {
        self.connections_full.inc();
    }

    /// Counts a connection or request of a client that had as many as it may have.
    pub(crate) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    /// Counts an unknown token.
    pub(crate) fn wrong_token(&self, endpoint: TokenEndpoint) {
        self.wrong_tokens.get_or_create(&[("door", endpoint.as_str())]).inc();
    }

    /// Counts a notification.
    pub(crate) fn notification(&self, verdict: NotificationVerdict) {
        self.notifications.get_or_create(&[("verdict", verdict.as_str())]).inc();
    }

    /// Counts a delivery of a hub.
    pub(crate) fn delivered(&self, verdict: DeliveryVerdict) {
        self.deliveries.get_or_create(&[("verdict", verdict.as_str())]).inc();
    }

    /// Counts a request. The labels come from bounded sets: route templates, and only the methods that are served.
    fn count(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let label = RequestLabel {
            route: route.to_owned(),
            method: name(method),
            status: status_class(status.as_u16()),
        };
        self.requests.get_or_create(&label).inc();
        self.seconds.get_or_create(&[("route", route.to_owned())]).observe(took.as_secs_f64());
    }
}

fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use service::ServiceInfo;

    use super::*;

    #[test]
    fn requests_are_counted_by_route_method_and_class_and_odd_methods_are_one() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let counted = GatewayMetrics::register(&metrics);
        let took = Duration::from_millis(3);
        for method in [Method::TRACE, Method::from_bytes(b"BREW").unwrap()] {
            counted.count(&method, "/v1/runs", StatusCode::METHOD_NOT_ALLOWED, took);
        }
        let text = metrics.encode();
        let line = "thresher_gateway_requests_total{route=\"/v1/runs\",method=\"other\",status=\"4xx\"} 2";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("thresher_gateway_request_seconds_count{route=\"/v1/runs\"} 2"), "{text}");
    }

    #[test]
    fn every_verdict_is_shown_before_the_first_one_comes() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        GatewayMetrics::register(&metrics);
        let text = metrics.encode();
        let notifications = NotificationVerdict::ALL.map(|(_, verdict)| ("notifications", verdict));
        let deliveries = DeliveryVerdict::ALL.map(|(_, verdict)| ("deliveries", verdict));
        for (name, verdict) in notifications.into_iter().chain(deliveries) {
            let line = format!("thresher_gateway_{name}_total{{verdict=\"{verdict}\"}} 0");
            assert!(text.lines().any(|shown| shown == line), "{line}");
        }
    }
}
