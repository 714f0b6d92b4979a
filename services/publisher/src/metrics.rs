//! Metrics of a publisher.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use publish::files::Scanned;
use service::{Labelled, Metrics, ServiceInfo};

/// The bounds of the times until changes are told, in seconds.
const SECONDS: [f64; 10] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0];

/// Metrics of a publisher. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PublisherMetrics {
    publications: Labelled<Counter>,
    telling: Histogram,
    scans: Labelled<Counter>,
    watched: Gauge,
    sets: Gauge,
    failing: Gauge,
    pub(crate) subscribers: Gauge,
    deliveries: Labelled<Counter>,
    verifications: Labelled<Counter>,
    ended: Labelled<Counter>,
    oai: Labelled<Counter>,
    connections_refused: Counter,
}

impl Default for PublisherMetrics {
    /// Not exported.
    fn default() -> Self {
        Self::register(&Metrics::new(ServiceInfo { name: "publisher", version: "" }))
    }
}

impl PublisherMetrics {
    /// Registers the metrics with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let publications = metrics.add_labelled(
            "publisher_publications",
            "Publications of changes, by what came of them",
            "result",
            &["published", "unchanged", "failed"],
        );
        let telling = metrics.add(
            "publisher_telling_seconds",
            "Time from the start of a check to the publication of its changes",
            Histogram::new(SECONDS),
        );
        let scans = metrics.add_labelled(
            "publisher_scans",
            "Scans of a directory, by their extent",
            "extent",
            &["all", "changed"],
        );
        let watched =
            metrics.add("publisher_watched_folders", "Folders watched for changes", Gauge::default());
        let sets = metrics.add("publisher_sets", "Publications that are served as sets", Gauge::default());
        let failing = metrics.add(
            "publisher_sets_failing",
            "Sets of this publisher to make whose last publication failed",
            Gauge::default(),
        );
        let subscribers =
            metrics.add("publisher_subscribers", "Subscribers of its own hub", Gauge::default());
        let deliveries = metrics.add_labelled(
            "publisher_deliveries",
            "Payloads sent to subscribers, by what came of them",
            "result",
            &["taken", "failed"],
        );
        let verifications = metrics.add_labelled(
            "publisher_verifications",
            "Requests to the hub, by what came of them",
            "result",
            &["confirmed", "unconfirmed", "no-room"],
        );
        let ended = metrics.add_labelled(
            "publisher_subscriptions_ended",
            "Subscriptions that have ended, by the reason",
            "reason",
            &["unsubscribed", "lease-over", "gone", "failed", "readers"],
        );
        let oai = metrics.add_labelled(
            "publisher_oai_requests",
            "Requests of OAI-PMH, by what came of them",
            "result",
            &["answered", "refused", "busy", "failed"],
        );
        let connections_refused = metrics.add(
            "publisher_connections_refused",
            "Connections, and requests through proxies, of clients that had as many as they may have",
            Counter::default(),
        );
        Self {
            publications,
            telling,
            scans,
            watched,
            sets,
            failing,
            subscribers,
            deliveries,
            verifications,
            ended,
            oai,
            connections_refused,
        }
    }

    /// How many sets there are, and of how many the last publication failed.
    pub(crate) fn sets(&self, sets: usize, failing: usize) {
        self.sets.set(sets as i64);
        self.failing.set(failing as i64);
    }

    /// A publication, if there were changes.
    pub(crate) fn published(&self, changes: Option<u64>) {
        let result = match changes {
            Some(0) => "unchanged",
            Some(_) => "published",
            None => "failed",
        };
        self.publications.of(result).inc();
    }

    /// How long it took until changes were told.
    pub(crate) fn told(&self, took: Duration) {
        self.telling.observe(took.as_secs_f64());
    }

    /// A scan of a directory.
    pub(crate) fn scanned(&self, scanned: &Scanned) {
        self.scans.of(if scanned.looks.is_some() { "changed" } else { "all" }).inc();
        self.watched.set(i64::try_from(scanned.watched).unwrap_or(i64::MAX));
    }

    pub(crate) fn delivered(&self, is_taken: bool) {
        self.deliveries.of(if is_taken { "taken" } else { "failed" }).inc();
    }

    pub(crate) fn verified(&self, is_confirmed: bool) {
        self.verifications.of(if is_confirmed { "confirmed" } else { "unconfirmed" }).inc();
    }

    pub(crate) fn no_room(&self) {
        self.verifications.of("no-room").inc();
    }

    /// A connection or request of a client that had as many as it may have.
    pub(crate) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    pub(crate) fn ended(&self, reason: &'static str) {
        self.ended.of(reason).inc();
    }

    /// A request of OAI-PMH.
    pub(crate) fn oai_answered(&self, result: &'static str) {
        self.oai.of(result).inc();
    }

    /// The counts of the hub, by name: of all hubs of the process.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 6] {
        [
            ("delivered", self.deliveries.of("taken").get()),
            ("failed", self.deliveries.of("failed").get()),
            ("verified", self.verifications.of("confirmed").get()),
            ("unverified", self.verifications.of("unconfirmed").get()),
            ("refused", self.verifications.of("no-room").get()),
            ("given_up", self.ended.of("failed").get()),
        ]
    }
}
