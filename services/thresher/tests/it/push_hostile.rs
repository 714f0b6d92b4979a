//! Hostile deliveries: forged, replayed, oversized, slow and flooding ones, over HTTP, at the gateway of a fleet. None
//! causes a false plan, and honest ones are served meanwhile.

use std::time::Duration;

use crate::common::api::Api;
use crate::common::push::Teller;
use crate::common::{Fleet, Service, resource, source, truth, urlset};
use futures::StreamExt as _;
use futures::stream;
use reqwest::Method;
use simulated_source::{Change, ChangeKind, Changes, SimulatedSource, SourceSpec};
use testkit::hub::{SimulatedHub, Subscriber, sign};
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::{found, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Services beside the gateway.
const OTHERS: [&str; 4] = ["scheduler", "fetcher", "unpacker", "verifier"];
/// The memory limit of a gateway under any load. More than half of it allows for a build without optimization.
const MOST_RESIDENT: u64 = 300 * 1024 * 1024;

/// A stored Source, its notifications, and the subscription to it.
struct Held {
    source: SimulatedSource,
    teller: Teller,
    to: Subscriber,
}

/// A gateway in a process of its own, the rest of the fleet in another, and two Sources with one hub.
struct Case {
    fleet: Fleet,
    gateway: Service,
    _others: Service,
    api: Api,
    hub: SimulatedHub,
    /// Named, to tell the two Sources apart.
    one: Held,
    other: Held,
}

impl Case {
    /// A case with these fields of the gateway.
    async fn new(limits: &str) -> Self {
        let hub = SimulatedHub::start().unwrap();
        let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
        let settings = fleet.push("http://push.example/", limits);
        let gateway = fleet.start(&["gateway"], &settings);
        let others = fleet.start(&OTHERS, &settings);
        let api = Api::of(&gateway).await;
        hub.find_callbacks_at(api.base.clone());
        let one = held(&fleet, &hub, 1).await;
        let other = held(&fleet, &hub, 2).await;
        Self { fleet, gateway, _others: others, api, hub, one, other }
    }

    /// Delivers the changes since the last delivery through the hub, honestly. Returns the payload.
    async fn deliver(&mut self, which: Which, changes: &[Change]) -> String {
        let held = self.held(which);
        let told = held.teller.tell(&held.source, changes);
        let to = held.to.clone();
        assert_eq!(self.hub.deliver_signed(&to, &told, &sign(&to.secret, told.as_bytes())).await, 202);
        told
    }

    fn held(&mut self, which: Which) -> &mut Held {
        match which {
            Which::One => &mut self.one,
            Which::Other => &mut self.other,
        }
    }

    /// Posts a delivery of a stranger. Returns its status; 0 if there is no response.
    async fn post(&self, callback: &str, headers: &[(&str, String)], body: impl Into<reqwest::Body>) -> u16 {
        post(&self.api, callback, headers, body).await
    }

    /// Both Sources are in sync, and no run is active any more.
    async fn in_step(&self) {
        let fleet = &self.fleet;
        let both = [&self.one.source, &self.other.source];
        let all = both.iter().flat_map(|source| truth(source)).collect();
        until("what is held is what the Sources have", || fleet.destination().present() == all).await;
        for source in both {
            fleet.watch(&source.well_known()).await.exits(0);
        }
        assert_eq!(fleet.destination().present(), all, "and nothing undoes it");
    }

    /// How many deliveries got a verdict.
    async fn counted(&self, verdict: &str) -> u64 {
        let admin = self.api.at(format!("http://{}", self.gateway.admin())).with(None);
        let text = String::from_utf8(admin.get("/metrics").await.body).unwrap();
        let line = format!("thresher_gateway_deliveries_total{{verdict=\"{verdict}\"}} ");
        text.lines().find_map(|text| text.strip_prefix(&line)).expect("it is shown").parse().unwrap()
    }

    async fn runs(&self) -> usize {
        self.api.get("/v1/runs?limit=1000").await.json()["items"].as_array().unwrap().len()
    }

    /// The peak memory of the gateway, in bytes.
    fn most_resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.gateway.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }
}

#[derive(Debug, Clone, Copy)]
enum Which {
    One,
    Other,
}

async fn held(fleet: &Fleet, hub: &SimulatedHub, seed: u64) -> Held {
    let source = source(SourceSpec::default().seed(seed).resources(12).hub(hub.url())).await;
    fleet.add(&source.well_known(), &[]);
    fleet.harvest(&source.well_known()).await.exits(0);
    let url = source.url();
    let look = async || hub.subscribers().into_iter().find(|each| each.topic.starts_with(&url));
    let to = found("the hub has verified the subscription", look).await;
    // The Source may change between the run and the subscription, so the hub's first notification starts a run.
    let mut teller = Teller::of(&source);
    let made = source.change(Changes { update: 1, ..Changes::default() });
    let first = teller.tell(&source, &made);
    assert_eq!(hub.deliver_signed(&to, &first, &sign(&to.secret, first.as_bytes())).await, 202);
    until("what is held is what the Source has", || {
        let present = fleet.destination().present();
        truth(&source).iter().all(|(uri, what)| present.get(uri) == Some(what))
    })
    .await;
    fleet.watch(&source.well_known()).await.exits(0);
    Held { source, teller, to }
}

async fn post(api: &Api, callback: &str, headers: &[(&str, String)], body: impl Into<reqwest::Body>) -> u16 {
    let request = api.with(None).request(Method::POST, path(callback));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    request.body(body).send().await.map_or(0, |answer| answer.status().as_u16())
}

fn path(callback: &str) -> &str {
    callback.strip_prefix("http://push.example").expect("it is under the public address")
}

fn signed(secret: &str, body: &str) -> [(&'static str, String); 1] {
    [("x-hub-signature", sign(secret, body.as_bytes()))]
}

/// A notification that declares everything deleted.
fn all_gone(source: &SimulatedSource) -> String {
    let from = source.now();
    let until = source.now().plus(1);
    let md = format!("change=\"deleted\" datetime=\"{until}\"");
    let entries: Vec<String> = source.expected().map(|each| resource(&each.uri, &md)).collect();
    urlset(&format!("capability=\"change-notification\" from=\"{from}\" until=\"{until}\""), &entries)
}

fn changes() -> Changes {
    Changes { create: 1, update: 2, delete: 1 }
}

#[tokio::test]
async fn nothing_forged_is_planned_and_nobody_learns_that_from_the_answer() {
    let mut case = Case::new("").await;
    let one = case.one.to.clone();
    let other = case.other.to.clone();
    let gone = all_gone(&case.one.source);
    let runs = case.runs().await;
    let queued = case.counted("queued").await;
    let right = sign(&one.secret, gone.as_bytes());
    let hex = right.split_once('=').unwrap().1;
    let forged = [
        ("guessed", sign("a guess", gone.as_bytes())),
        ("of another subscription", sign(&other.secret, gone.as_bytes())),
        ("of another body", sign(&one.secret, b"<urlset/>")),
        ("of a body with one byte more", sign(&one.secret, format!("{gone} ").as_bytes())),
        ("cut short", right[..right.len() - 2].to_owned()),
        ("of an unknown method", format!("sha3={hex}")),
        ("of a method that is none any more", format!("md5={}", &hex[..32])),
        ("of no method", hex.to_owned()),
        ("of another method than it says", format!("sha1={hex}")),
        ("empty", String::new()),
    ];
    for (what, signature) in &forged {
        let headers = [("x-hub-signature", signature.clone())];
        assert_eq!(case.post(&one.callback, &headers, gone.clone()).await, 202, "{what}");
    }
    assert_eq!(case.post(&one.callback, &[], gone.clone()).await, 202, "without a signature");
    // A valid signature for one Source is invalid for the other.
    assert_eq!(case.post(&other.callback, &signed(&one.secret, &gone), gone.clone()).await, 202);
    let elsewhere = [signed(&one.secret, &gone)[0].clone(), ("link", format!("<{}>; rel=self", other.topic))];
    assert_eq!(case.post(&one.callback, &elsewhere, gone.clone()).await, 202, "of another topic");
    let nowhere = one.callback.replace("/push/", "/push/0");
    assert_eq!(case.post(&nowhere, &signed(&one.secret, &gone), gone.clone()).await, 404);
    let swapped = one.callback.rsplit_once('/').unwrap().0.to_owned()
        + "/"
        + other.callback.rsplit_once('/').unwrap().1;
    assert_eq!(case.post(&swapped, &signed(&one.secret, &gone), gone.clone()).await, 404);

    let mut dropped = 0;
    for verdict in ["bad-signature", "unreadable", "unsigned", "misdirected"] {
        dropped += case.counted(verdict).await;
    }
    assert_eq!(dropped, forged.len() as u64 + 3);
    assert_eq!((case.counted("unknown").await, case.counted("queued").await), (2, queued));
    assert_eq!(case.runs().await, runs, "nobody looks for it");
    // Any queued forgeries would be planned before this.
    for which in [Which::One, Which::Other] {
        let made = case.held(which).source.change(changes());
        case.deliver(which, &made).await;
    }
    case.in_step().await;
}

#[tokio::test]
async fn what_is_replayed_undoes_nothing() {
    let mut case = Case::new("").await;
    let queued = case.counted("queued").await;
    let mut told = Vec::new();
    let kinds = [ChangeKind::Updated, ChangeKind::Deleted, ChangeKind::Created];
    // Resource 0 is updated, deleted, and created again. 1 stays deleted. 2 is deleted first and exists in the end.
    for (kind, more) in
        kinds.into_iter().zip([(2, ChangeKind::Deleted), (1, ChangeKind::Deleted), (2, ChangeKind::Created)])
    {
        let source = &case.one.source;
        let made = [source.change_one(0, kind), source.change_one(more.0, more.1)];
        told.push(case.deliver(Which::One, &made).await);
        case.in_step().await;
    }
    case.one.source.reset_requests();
    let to = case.one.to.clone();
    for old in &told {
        // Byte for byte, while the gateway remembers it; and with a changed body, as if it had forgotten it.
        let again = format!("{old}<!-- once more -->");
        for body in [old, &again] {
            assert_eq!(case.post(&to.callback, &signed(&to.secret, body), body.clone()).await, 202);
        }
    }
    let made = case.one.source.change(Changes { update: 1, ..Changes::default() });
    case.deliver(Which::One, &made).await;
    assert_eq!((case.counted("duplicate").await, case.counted("queued").await - queued), (3, 3 + 3 + 1));
    case.in_step().await;
    assert_eq!(case.one.source.requests().resources, 1, "nothing old is asked for");
    let id = model::SourceId::of_entry(&case.one.source.well_known().parse().unwrap());
    let problems = case.api.get(&format!("/v1/sources/{id}/problems")).await.json();
    assert_eq!(problems["items"], serde_json::json!([]));
}

#[tokio::test]
async fn what_is_too_long_is_refused_and_takes_no_memory() {
    const MOST: usize = 20_000;
    let mut case = Case::new(&format!("push_body_bytes: {MOST}, push_per_second: 10000, ")).await;
    let to = case.one.to.clone();
    let long = format!("{}<!--{}-->", all_gone(&case.one.source), "x".repeat(MOST));
    assert_eq!(case.post(&to.callback, &signed(&to.secret, &long), long.clone()).await, 413);
    let before = case.most_resident();
    // 64 bodies of 16 MiB without a declared length.
    let endless = (0..64).map(|_| {
        let pieces = stream::iter((0..256).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 64 * 1024])));
        case.post(&to.callback, &[], reqwest::Body::wrap_stream(pieces))
    });
    let answers: Vec<u16> = stream::iter(endless).buffer_unordered(8).collect().await;
    // A client that goes on sending may miss the response.
    assert!(answers.iter().all(|status| matches!(status, 0 | 413)), "{answers:?}");
    let grown = case.most_resident().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "it takes {grown} bytes more");
    assert_eq!(case.counted("oversized").await, 65);
    // The longest body that is accepted.
    let made = case.one.source.change(changes());
    let told = case.one.teller.tell(&case.one.source, &made);
    let filled = format!("{told}<!--{}-->", "x".repeat(MOST - told.len() - 7));
    assert_eq!(filled.len(), MOST);
    assert_eq!(case.post(&to.callback, &signed(&to.secret, &filled), filled.clone()).await, 202);
    case.in_step().await;
}

/// Sends an endless request: its beginning, and then a byte a second until the gateway closes the connection. Returns
/// the status of the response; 0 if there is none.
async fn one_byte_a_second(address: String, beginning: String) -> u16 {
    let line = TcpStream::connect(address).await.unwrap();
    let (mut from, mut to) = line.into_split();
    let sending = async {
        let _ = to.write_all(beginning.as_bytes()).await;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if to.write_all(b"x").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let mut text = Vec::new();
    tokio::select! {
        // If the gateway closes before reading everything, an error follows the response.
        _ = from.read_to_end(&mut text) => {}
        () = sending => {}
    }
    String::from_utf8_lossy(&text)
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_default()
}

#[tokio::test]
async fn hundreds_that_send_a_byte_a_second_are_dropped_and_an_honest_one_is_served() {
    let mut case =
        Case::new("push_body_seconds: 10, header_timeout_seconds: 10, connections_per_client: 0, ").await;
    let address = case.api.base.strip_prefix("http://").unwrap().to_owned();
    let body = "Content-Length: 100000\r\n\r\n<";
    let head = "X-Word: ";
    let known = path(&case.one.to.callback).to_owned();
    let unknown = "/push/0/0".to_owned();
    let begin = |path: &str, rest: &str| format!("POST {path} HTTP/1.1\r\nHost: push.example\r\n{rest}");
    let kinds = [begin(&known, body), begin(&unknown, body), begin(&known, head)];
    let slow: Vec<_> = (0..300)
        .map(|n| tokio::spawn(one_byte_a_second(address.clone(), kinds[n % kinds.len()].clone())))
        .collect();
    until("the first ones are sent away", || slow.iter().filter(|one| one.is_finished()).count() >= 100)
        .await;
    // Connections at one Source's callback use that Source's limit, and none of the other's.
    for _ in 0..3 {
        let made = case.other.source.change(changes());
        case.deliver(Which::Other, &made).await;
    }
    let still_there = slow.iter().filter(|one| !one.is_finished()).count();
    assert!(still_there > 0, "the honest ones were not kept waiting for the slow ones");
    let mut ends: Vec<u16> = Vec::new();
    for one in slow {
        ends.push(tokio::time::timeout(Duration::from_secs(60), one).await.expect("it is dropped").unwrap());
    }
    let at = |kind: usize| ends.iter().skip(kind).step_by(kinds.len()).copied();
    let late = at(0).filter(|status| *status == 408).count();
    assert!((1..=8).contains(&late), "{late} at one callback were read at a time");
    assert!(at(0).all(|status| matches!(status, 408 | 429)), "{:?}", at(0).collect::<Vec<_>>());
    assert!(at(1).all(|status| status == 404), "{:?}", at(1).collect::<Vec<_>>());
    assert!(at(2).all(|status| status == 0), "{:?}", at(2).collect::<Vec<_>>());
    // Its connections are free again.
    let made = case.one.source.change(changes());
    case.deliver(Which::One, &made).await;
    case.in_step().await;
}

#[tokio::test]
async fn a_flood_takes_little_memory_plans_nothing_wrong_and_honest_ones_are_served() {
    let mut case = Case::new("push_body_bytes: 100000, ").await;
    let to = case.one.to.clone();
    let queued = case.counted("queued").await;
    let now = case.one.source.now();
    let gone = all_gone(&case.one.source);
    let large = format!("{gone}<!--{}-->", "x".repeat(50_000));
    let too_large = "x".repeat(200_000);
    // The hub of a subscription may flood as well: it repeats that nothing has changed.
    let md = format!("capability=\"change-notification\" from=\"{now}\" until=\"{now}\"");
    let nothing = urlset(&md, &[]);
    let honest: Vec<String> = (0..20)
        .map(|_| {
            let made = case.other.source.change(Changes { update: 1, ..Changes::default() });
            case.other.teller.tell(&case.other.source, &made)
        })
        .collect();
    // With connections of their own.
    let strangers = Api::of(&case.gateway).await;
    let flood = stream::iter(0..2_000).map(|n| {
        let strangers = &strangers;
        let to = &to;
        let (callback, secret, body) = match n % 5 {
            0 => (to.callback.clone(), Some("a guess"), large.clone()),
            1 => (to.callback.clone(), None, gone.clone()),
            2 => (format!("{}0", to.callback), Some(to.secret.as_str()), large.clone()),
            3 => (to.callback.clone(), Some(to.secret.as_str()), too_large.clone()),
            _ => (to.callback.clone(), Some(to.secret.as_str()), format!("{nothing}<!-- {n} -->")),
        };
        async move {
            let headers = secret.map(|secret| signed(secret, &body)[0].clone());
            (n % 5, post(strangers, &callback, headers.as_slice(), body).await)
        }
    });
    let honest = async {
        let mut answers = Vec::new();
        for told in &honest {
            let signature = sign(&case.other.to.secret, told.as_bytes());
            answers.push(case.hub.deliver_signed(&case.other.to, told, &signature).await);
        }
        answers
    };
    let (flooded, served) = tokio::join!(flood.buffer_unordered(64).collect::<Vec<(usize, u16)>>(), honest);
    assert_eq!(served, [202; 20], "the other Source's hub has a rate and places of its own");
    // A client refused before its body was read may miss the reason: the connection closes while it still sends.
    for (kind, may_be) in [&[0, 202, 429][..], &[0, 202, 429], &[0, 404], &[0, 413, 429], &[0, 202, 429, 503]]
        .iter()
        .enumerate()
    {
        let wrong = flooded.iter().find(|(of, status)| *of == kind && !may_be.contains(status));
        assert_eq!(wrong, None, "of kind {kind}");
    }
    let taken = flooded.iter().filter(|answer| **answer == (4, 202)).count() as u64;
    assert!(flooded.iter().any(|(_, status)| *status == 429), "it is held up");
    assert_eq!(case.counted("queued").await - queued, taken + 20, "what is signed, and nothing else");
    let most = case.most_resident();
    assert!(most < MOST_RESIDENT, "it took {most} bytes");
    case.in_step().await;
}
