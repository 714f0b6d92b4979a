//! TimeGate, TimeMap and versions over HTTP: a control store in NATS, and a catalog in memory.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use bytes::Bytes;
use catalog::{Batch, Catalog, CatalogConfig};
use control::{Config, Control};
use fixity::{Computed, Sha256};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use links::{Limits, header, timemap};
use model::{Assurance, Bitstream, Declaration, Listing, RunId, SetId, SystemClock, Validators, Version};
use service::{Metrics, Readiness, ServiceInfo};
use serving::{Catalogs, VerifiedCache};
use store::{Key, NewBitstream, Store};
use testkit::servers::NatsFixture;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api;
use crate::config::Settings;
use crate::metrics::GatewayMetrics;
use crate::state::{Parts as GatewayParts, Views};
use crate::tokens::Tokens;
use crate::wrong_tokens::WrongTokens;

const URI: &str = "https://e.org/a,b?c=d&e=%20";
const SOURCE: &str = "e-org-8198d1bac40a";
const BASE: &str = "http://localhost/v1/sources/e-org-8198d1bac40a";

/// A gateway over one Source.
struct Case {
    gateway: Gateway,
    record: ResourceRecord,
    versions: Versions,
}

/// An answer, read to its end.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn text(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The target of the only link with this relation.
    fn link(&self, relation: &str) -> Option<String> {
        let mut links = header::parse(self.text("link")).into_iter().filter(|link| link.is(relation));
        let found = links.next().map(|link| link.target);
        assert_eq!(links.next(), None);
        found
    }
}

fn second(number: i64) -> Timestamp {
    Timestamp::from_second(1_767_700_800 + number).unwrap()
}

fn date(number: i64) -> String {
    http_date(second(number)).unwrap()
}

async fn put(store: &Store, text: &str, at: Timestamp) -> Bitstream {
    let content = Bytes::copy_from_slice(text.as_bytes());
    let location = store.put_bitstream(NewBitstream::Memory(Sha256::of(&content), content)).await.unwrap();
    Bitstream {
        location,
        computed: Computed::of(text.as_bytes()),
        assurance: Assurance::Digest,
        media_type: Some("text/plain".to_owned()),
        encoding: None,
        validators: Validators::default(),
        final_url: None,
        stored_at: at,
    }
}

fn listing() -> Listing {
    let document = "http://e.org/list".to_owned().into();
    Listing {
        document,
        set: SetId::new("set"),
        change: None,
        change_time: None,
        as_of: None,
        latest: None,
        links: None,
        linked: None,
    }
}

impl Case {
    /// With these versions, each stored at the given moment until the next, or deleted after the last.
    async fn new(stored: &[(&str, Timestamp)], deleted_at: Option<Timestamp>) -> Self {
        let store = Store::in_memory();
        let mut bitstreams = Vec::new();
        for (text, at) in stored {
            bitstreams.push(put(&store, text, *at).await);
        }
        let ends = stored.iter().map(|(_, at)| *at).skip(1).chain(deleted_at);
        let versions = bitstreams.iter().zip(ends).map(|(bitstream, until)| Version {
            bitstream: bitstream.clone(),
            declaration: Declaration::default(),
            listing: listing(),
            from: bitstream.stored_at,
            until,
            source_from: None,
            lost: None,
        });
        let versions = Versions { kept: versions.collect(), since: None };
        let last = bitstreams.pop();
        let (bitstream, deleted) = if deleted_at.is_some() { (None, last) } else { (last, None) };
        let record = ResourceRecord {
            bitstream,
            declaration: Declaration::default(),
            listing: listing(),
            sets: Vec::new(),
            deleted,
            collected: None,
            absent: None,
            settled_at: deleted_at.unwrap_or(second(1_000)),
        };
        let source: SourceId = SOURCE.parse().unwrap();
        let path = Key::Catalog(source).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
        let mut batch = Batch::new();
        let uri: ResourceUri = URI.parse().unwrap();
        batch.put_resource(&uri, &record);
        batch.put_versions(&uri, &versions);
        catalog.commit(batch).await.unwrap();
        catalog.close().await.unwrap();
        Self { gateway: gateway(store).await, record, versions }
    }

    async fn get(&self, url: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::get(url.strip_prefix("http://localhost").unwrap());
        for (name, value) in [("host", "localhost")].iter().chain(headers) {
            request = request.header(*name, *value);
        }
        let router = TowerToHyperService::new(api::router(self.gateway.clone(), None));
        let response = router.call(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 10_000_000).await.unwrap();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// The text to which the TimeGate leads.
    async fn at(&self, moment: i64) -> String {
        let gate = self.get(&format!("{BASE}/timegate/{URI}"), &[("accept-datetime", &date(moment))]).await;
        assert_eq!((gate.status, gate.text("vary")), (302, "accept-datetime"), "{gate:?}");
        assert_eq!(gate.text("memento-datetime"), "");
        let memento = self.get(gate.text("location"), &[]).await;
        assert_eq!(memento.status, 200, "{memento:?}");
        assert_eq!(memento.link("original").as_deref(), Some(URI));
        assert_eq!(memento.link("timegate"), Some(format!("{BASE}/timegate/{URI}")));
        assert_eq!(memento.link("timemap"), Some(format!("{BASE}/timemap/{URI}")));
        String::from_utf8(memento.body.to_vec()).unwrap()
    }
}

async fn gateway(store: Store) -> Gateway {
    let config = Config {
        servers: vec![NatsFixture::get().await.url],
        namespace: format!("t-{}", RunId::fresh()),
        ..Config::default()
    };
    let control = Control::connect(&config).await.unwrap();
    let settings = Settings { allow_anonymous: true, ..Settings::default() };
    let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
    Gateway::new(GatewayParts {
        wrong_tokens: WrongTokens::new(NonZeroU32::MIN),
        tokens: Tokens::not_required(NonZeroU32::new(10_000).unwrap()),
        views: Views {
            sources: control.sources().view().await.unwrap(),
            runs: control.runs().view().await.unwrap(),
            tasks: control.tasks().view().await.unwrap(),
            leases: control.leases().view().await.unwrap(),
            plans: control.plans().view().await.unwrap(),
            subscriptions: control.subscriptions().view().await.unwrap(),
            members: control.members().view().await.unwrap(),
            samples: control.samples().view().await.unwrap(),
        },
        control,
        catalogs: Catalogs::new(store.clone(), 2, 1024 * 1024),
        store,
        settings,
        verified: VerifiedCache::default(),
        batches: Arc::new(Semaphore::new(1)),
        metrics: GatewayMetrics::register(&metrics),
        clock: Arc::new(SystemClock),
        started_at: second(0),
        readiness: Readiness::default(),
        stop: CancellationToken::new(),
    })
}

/// MEM-1 and MEM-2: what the TimeGate leads to is what was stored at that moment.
#[tokio::test]
async fn each_moment_leads_to_the_version_that_was_stored_then() {
    let half = second(20) + SignedDuration::from_millis(500);
    let case = Case::new(&[("one", second(10)), ("two", half), ("three", second(30))], None).await;
    for (moment, text) in [
        (0, "one"),
        (10, "one"),
        (19, "one"),
        (20, "one"),
        (21, "two"),
        (29, "two"),
        (30, "three"),
        (999, "three"),
    ] {
        assert_eq!(case.at(moment).await, text, "at {moment}");
        // `cat --at` answers by the same function.
        let stored = moment::at(&case.record, &case.versions, second(moment));
        let is_same = matches!(stored, moment::At::Stored(bitstream, ..) if bitstream.computed == Computed::of(text.as_bytes()));
        assert!(is_same || moment < 10, "at {moment}: {stored:?}");
    }
    let newest = case.get(&format!("{BASE}/timegate/{URI}"), &[]).await;
    let memento = case.get(newest.text("location"), &[]).await;
    assert_eq!((&memento.body[..], memento.text("memento-datetime")), (&b"three"[..], date(30).as_str()));
}

#[tokio::test]
async fn a_gate_names_the_versions_beside_the_chosen_one() {
    let stored = [("1", second(10)), ("2", second(20)), ("3", second(30)), ("4", second(40))];
    let case = Case::new(&stored, None).await;
    let gate = case.get(&format!("{BASE}/timegate/{URI}"), &[("accept-datetime", &date(35))]).await;
    for (relation, at) in [("first", 10), ("prev", 20), ("next", 40), ("last", 40)] {
        assert_eq!(gate.link(relation), Some(memento_url(at)), "{relation}");
    }
    assert_eq!(gate.text("location"), memento_url(30));
    assert_eq!((gate.link("timegate"), gate.link("original").as_deref()), (None, Some(URI)));
    let first = case.get(&format!("{BASE}/timegate/{URI}"), &[("accept-datetime", &date(0))]).await;
    assert_eq!((first.link("prev"), first.link("next")), (None, Some(memento_url(20))));
}

fn memento_url(at: i64) -> String {
    let source = SOURCE.parse().unwrap();
    let urls = MementoUrls::at(Some(&"http://localhost".parse().unwrap()), &source, &URI.parse().unwrap());
    urls.memento(second(at))
}

/// MEM-3: the TimeMap lists exactly the versions that can be had.
#[tokio::test]
async fn a_time_map_lists_what_is_stored_and_each_can_be_had() {
    let mut case =
        Case::new(&[("one", second(10)), ("two", second(20)), ("three", second(30))], Some(second(40))).await;
    let answer = case.get(&format!("{BASE}/timemap/{URI}"), &[("accept-datetime", "nonsense")]).await;
    assert_eq!((answer.status, answer.text("content-type")), (200, "application/link-format"));
    let map = timemap::read(&answer.body, timemap::Format::LinkFormat, &Limits::BODY).unwrap();
    assert!(map.faults.is_empty() && map.has_first && map.has_last, "{map:?}");
    assert_eq!(map.original.as_deref(), Some(URI));
    assert_eq!(map.timegate, Some(format!("{BASE}/timegate/{URI}")));
    let this = map.this.unwrap();
    assert_eq!((this.from, this.until), (Some(second(10)), Some(second(30))));
    let times: Vec<_> = map.mementos.iter().map(|memento| memento.time).collect();
    assert_eq!(times, [second(10), second(20), second(30)]);
    for (memento, text) in map.mementos.iter().zip(["one", "two", "three"]) {
        let answer = case.get(&memento.url, &[]).await;
        assert_eq!((answer.status, &answer.body[..]), (200, text.as_bytes()));
        assert_eq!(answer.text("memento-datetime"), http_date(memento.time).unwrap());
    }
    // A deleted resource has versions, and none after its deletion.
    assert_eq!(case.at(100).await, "three");
    let after = case
        .get(
            &format!(
                "{BASE}/resources/content?uri=https%3A%2F%2Fe.org%2Fa%2Cb%3Fc%3Dd%26e%3D%2520&at={}",
                second(45)
            ),
            &[],
        )
        .await;
    assert_eq!(after.status, 404);

    // A version whose bytes were discarded is not listed.
    case.versions.kept[1].lost = Some(second(50));
    let held = moment::held(&case.record, &case.versions);
    assert_eq!(held.iter().map(|version| version.from).collect::<Vec<_>>(), [second(10), second(30)]);
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_in_words() {
    let case = Case::new(&[("one", second(10))], None).await;
    let gate = format!("{BASE}/timegate/{URI}");
    for wrong in
        ["2026-01-06T09:00:00Z", "Tue, 6 Jan 2026 09:00:00 GMT", "Tue, 06 Jan 2026 09:00:00 +0000", ""]
    {
        assert_eq!(case.get(&gate, &[("accept-datetime", wrong)]).await.status, 400, "{wrong}");
    }
    let twice = [("accept-datetime", date(1)), ("accept-datetime", date(2))];
    let twice = twice.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(case.get(&gate, &twice).await.status, 400);
    for (path, status) in [
        ("timegate/https://e.org/other", 404),
        ("timemap/https://e.org/other", 404),
        ("timemap/2/https://e.org/a,b?c=d&e=%20", 404),
        ("timemap/0/https://e.org/a,b?c=d&e=%20", 404),
        ("timemap/1/https://e.org/a,b?c=d&e=%20", 200),
        ("timemap/https%3A%2F%2Fe%2Eorg%2Fa%2Cb%3Fc%3Dd%26e%3D%2520", 200),
        ("timegate/nonsense", 400),
        ("timegate/", 404),
    ] {
        let answer = case.get(&format!("{BASE}/{path}"), &[]).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    let other =
        case.get("http://localhost/v1/sources/e-org-000000000000/timegate/https://e.org/a", &[]).await;
    assert_eq!(other.status, 404);
    let present = case
        .get(&format!("{BASE}/resources/content?uri=https%3A%2F%2Fe.org%2Fa%2Cb%3Fc%3Dd%26e%3D%2520"), &[])
        .await;
    assert_eq!((present.status, present.text("memento-datetime")), (200, ""));
    assert_eq!((present.link("timegate"), present.link("original")), (Some(gate), None));
}

#[test]
fn pages_of_a_time_map_join_on_to_each_other() {
    let computed = Computed::of(b"");
    let bitstream = Bitstream {
        location: model::Location::Object { sha256: computed.sha256() },
        computed,
        assurance: Assurance::Digest,
        media_type: None,
        encoding: None,
        validators: Validators::default(),
        final_url: None,
        stored_at: second(0),
    };
    let held: Vec<_> = (0..7).map(|at| Held { bitstream: &bitstream, from: second(at) }).collect();
    let urls = MementoUrls::at(None, &"s".parse().unwrap(), &URI.parse().unwrap());
    let pages: Vec<_> = (1..=3).map(|page| page_of(&held, page, 3, &urls).unwrap()).collect();
    let all: Vec<_> = pages.iter().flat_map(|page| &page.mementos).map(|memento| memento.time).collect();
    assert_eq!(all, held.iter().map(|version| version.from).collect::<Vec<_>>());
    for (number, page) in pages.iter().enumerate() {
        assert_eq!((page.has_first, page.has_last), (number == 0, number == 2));
        let others: Vec<_> = page.parts.iter().map(|part| part.url.clone()).collect();
        let expected: Vec<_> =
            (0..3).filter(|other| *other != number).map(|other| urls.timemap(other + 1)).collect();
        assert_eq!(others, expected);
    }
    assert!(page_of(&held, 0, 3, &urls).is_none() && page_of(&held, 4, 3, &urls).is_none());
}

#[test]
fn a_gate_names_each_version_once() {
    for (chosen, last, expected) in [
        (0, 0, vec![0]),
        (0, 1, vec![0, 1]),
        (1, 1, vec![0, 1]),
        (2, 4, vec![0, 1, 2, 3, 4]),
        (3, 9, vec![0, 2, 3, 4, 9]),
    ] {
        assert_eq!(neighbours(chosen, last), expected);
    }
}
