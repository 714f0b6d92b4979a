//! Metrics of the requests of a process, for all its services.

use std::sync::Arc;
use std::time::Duration;

use model::Origin;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use service::{Metrics, status_class};
use web::{Client, Exchange, Observer};

use crate::origin_groups::{OTHER, OriginGroups};

/// Buckets from a nearby server to one that generates its lists on request.
const SECONDS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Counts the requests of `client` by group of origins, together with those of the other services of this process.
///
/// # Errors
/// When there are too many groups, or their names are invalid.
pub fn count_requests(client: &Client, groups: &OriginGroups, metrics: &Metrics) -> anyhow::Result<()> {
    groups.check()?;
    let counted = metrics.shared(|registry| {
        let counted = Counted::default();
        // Create the series now, because a fleet may be idle for long.
        drop(counted.in_flight.get_or_create(&OriginsLabel { origin_group: OTHER.to_owned() }));
        drop(counted.bytes.get_or_create(&OriginsLabel { origin_group: OTHER.to_owned() }));
        registry.register(
            "http_requests",
            "Requests sent to Sources, by group of origins and class of status",
            counted.requests.clone(),
        );
        registry.register(
            "http_response_seconds",
            "Time until the head of an answer came, by group of origins",
            counted.seconds.clone(),
        );
        registry.register(
            "http_received_bytes",
            "Bytes of bodies received, by group of origins",
            counted.bytes.clone(),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests whose answers have not ended, by group of origins",
            counted.in_flight.clone(),
        );
        counted
    });
    client.observe(Arc::new(Counting { groups: groups.clone(), counted }));
    Ok(())
}

#[derive(Debug, Clone)]
struct Counted {
    requests: Family<RequestLabel, Counter>,
    seconds: Family<OriginsLabel, Histogram>,
    bytes: Family<OriginsLabel, Counter>,
    in_flight: Family<OriginsLabel, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    origin_group: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OriginsLabel {
    origin_group: String,
}

#[derive(Debug)]
struct Counting {
    groups: OriginGroups,
    counted: Counted,
}

/// A request under way. Its series are looked up once.
struct UnderWay {
    origin_group: String,
    requests: Family<RequestLabel, Counter>,
    seconds: Histogram,
    bytes: Counter,
    in_flight: Gauge,
    /// Whether its response was counted.
    is_counted: bool,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            bytes: Family::default(),
            in_flight: Family::default(),
        }
    }
}

impl Observer for Counting {
    fn begin(&self, origin: &Origin) -> Box<dyn Exchange> {
        let origin_group = self.groups.of(origin).to_owned();
        let label = OriginsLabel { origin_group: origin_group.clone() };
        let in_flight = self.counted.in_flight.get_or_create_owned(&label);
        in_flight.inc();
        Box::new(UnderWay {
            requests: self.counted.requests.clone(),
            seconds: self.counted.seconds.get_or_create_owned(&label),
            bytes: self.counted.bytes.get_or_create_owned(&label),
            in_flight,
            origin_group,
            is_counted: false,
        })
    }
}

impl UnderWay {
    fn count(&mut self, status: &'static str) {
        self.is_counted = true;
        self.requests.get_or_create(&RequestLabel { origin_group: self.origin_group.clone(), status }).inc();
    }
}

impl Exchange for UnderWay {
    fn answered(&mut self, status: Option<u16>, after: Duration) {
        self.count(status.map_or("none", status_class));
        if status.is_some() {
            self.seconds.observe(after.as_secs_f64());
        }
    }

    fn received(&mut self, bytes: u64) {
        self.bytes.inc_by(bytes);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // It was cancelled before the response came.
        if !self.is_counted {
            self.count("none");
        }
        self.in_flight.dec();
    }
}

#[cfg(test)]
mod tests {
    use service::ServiceInfo;

    use super::*;

    #[test]
    fn requests_are_counted_by_group_and_class_and_are_in_flight_until_their_answers_end() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let groups: OriginGroups = serde_json::from_str(r#"{"partners": ["example.org"]}"#).unwrap();
        let clients = [(); 2].map(|()| Client::new(web::WebConfig::default()).unwrap());
        clients.iter().for_each(|client| count_requests(client, &groups, &metrics).unwrap());
        let counted = metrics.shared(|_| -> Counted { panic!("both clients count together") });
        let counting = Counting { groups, counted };
        let origin = |text: &str| text.parse::<Origin>().unwrap();
        let mut partner = counting.begin(&origin("https://www.example.org"));
        partner.answered(Some(503), Duration::from_millis(200));
        partner.received(7);
        drop(counting.begin(&origin("http://h")));
        let text = metrics.encode();
        for line in [
            "thresher_http_requests_total{origin_group=\"partners\",status=\"5xx\"} 1",
            "thresher_http_requests_total{origin_group=\"other\",status=\"none\"} 1",
            "thresher_http_received_bytes_total{origin_group=\"partners\"} 7",
            "thresher_http_requests_in_flight{origin_group=\"partners\"} 1",
            "thresher_http_requests_in_flight{origin_group=\"other\"} 0",
            "thresher_http_response_seconds_count{origin_group=\"partners\"} 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
