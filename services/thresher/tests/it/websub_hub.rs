//! A third-party hub: PyPI's flask-websub verifies a fleet, delivers to it, retries, and is unsubscribed in the end.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::api::{Api, send};
use crate::common::push::Teller;
use crate::common::{Destination, Fleet, Process, Run, Service, source, truth};
use crate::publish::{Served, originals};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use simulated_source::{Change, Changes, SimulatedSource, SourceSpec};
use tempfile::TempDir;
use testkit::relay::{Passed, Relay};
use testkit::servers::{NatsFixture, S3Fixture, Venv};
use testkit::waiting::{found, until};
use websub::{Channel, publish};

/// The interval between queries of the hub's subscriptions.
const LOOK: Duration = Duration::from_millis(20);

/// A hub of flask-websub, in a process of its own.
struct PeerHub {
    process: Process,
    base: String,
    _folder: TempDir,
}

/// A subscription as the hub stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    topic: String,
    callback: String,
    /// In Unix seconds, by its own clock.
    expires: i64,
}

impl PeerHub {
    /// Starts a hub that signs with this hash.
    async fn start(hash: &'static str) -> Self {
        let starting = tokio::task::spawn_blocking(move || {
            let folder = TempDir::with_prefix("hub-").unwrap();
            let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/run_hub.py");
            let venv = Venv::websub().expect("pip installs what is pinned");
            let mut command = Command::new(venv.program("python"));
            command.arg("-B").arg(program).arg(folder.path()).arg(hash).env("NO_PROXY", "*");
            let mut process = Process::talk(&mut command);
            let line = process.hear();
            let base = line.strip_prefix("listening ").expect("it says where it listens").to_owned();
            Self { process, base, _folder: folder }
        });
        starting.await.unwrap()
    }

    fn url(&self) -> String {
        format!("{}/hub", self.base)
    }

    /// From now on it grants leases of this many seconds.
    fn grant(&mut self, seconds: u32) {
        self.process.say(&format!("lease {seconds}"));
        assert_eq!(self.process.hear(), "granted");
    }

    /// Its subscriptions.
    fn kept(&mut self) -> Vec<Kept> {
        self.process.say("subscriptions");
        let said: Value = serde_json::from_str(&self.process.hear()).unwrap();
        let text = |of: &Value, name: &str| of[name].as_str().unwrap().to_owned();
        let of = |of: &Value| Kept {
            topic: text(of, "topic"),
            callback: text(of, "callback"),
            expires: of["expires"].as_i64().unwrap(),
        };
        said["subscriptions"].as_array().unwrap().iter().map(of).collect()
    }

    /// Waits until its subscriptions are as expected, and returns them.
    async fn keeps(&mut self, what: &str, is_so: impl Fn(&[Kept]) -> bool) -> Vec<Kept> {
        let look = async || {
            let kept = self.kept();
            if is_so(&kept) {
                return Some(kept);
            }
            tokio::time::sleep(LOOK).await;
            None
        };
        found(format!("the hub keeps {what}"), look).await
    }
}

/// A fleet in one process behind a relay, a Source in sync with it, and the Source's hub.
struct Case {
    fleet: Fleet,
    _all: Service,
    relay: Relay,
    hub: PeerHub,
    channel: Channel,
    source: SimulatedSource,
    teller: Teller,
}

impl Case {
    async fn new(mut hub: PeerHub) -> Self {
        let source = source(SourceSpec::default().resources(30).hub(hub.url())).await;
        let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
        // The hub calls the advertised URL, and the gateway's port is unknown before it runs.
        let relay = Relay::start().unwrap();
        let all = fleet.start(&[], &fleet.push(&relay.url(), ""));
        relay.lead_to(Api::of(&all).await.base);
        fleet.add(&source.well_known(), &[]);
        fleet.harvest(&source.well_known()).await.exits(0);
        let kept = hub.keeps("a subscription", |kept| kept.len() == 1).await.remove(0);
        assert!(kept.callback.starts_with(&format!("{}/push/", relay.url())), "{}", kept.callback);
        let channel = Channel {
            topic: kept.topic.parse().unwrap(),
            hub: hub.url().parse().unwrap(),
            capability_list: Some(format!("{}/capabilitylist.xml", source.url()).parse().unwrap()),
        };
        let teller = Teller::of(&source);
        Self { fleet, _all: all, relay, hub, channel, source, teller }
    }

    /// Has the Source publish its changes to its hub, in payloads of at most this many bytes. Returns their number.
    async fn publish(&mut self, changes: &[Change], most_bytes: usize) -> usize {
        let (from, until, entries) = self.teller.entries(&self.source, changes);
        let mut count = 0;
        for told in publish(&self.channel, from, until, entries, most_bytes) {
            let client = Client::builder().no_proxy().build().unwrap();
            let request = client.post(format!("{}/publish", self.hub.base)).body(told.unwrap().body);
            let headers = self.channel.headers();
            let request =
                headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
            send(request).await.is(StatusCode::ACCEPTED);
            count += 1;
        }
        count
    }

    async fn in_step(&self) {
        let fleet = &self.fleet;
        let source = &self.source;
        until("what is held is what the Source has", || fleet.destination().present() == truth(source)).await;
        fleet.watch(&source.well_known()).await.exits(0);
    }

    /// The deliveries through the relay.
    fn deliveries(&self) -> Vec<Passed> {
        self.relay.passed().into_iter().filter(|passed| passed.method == Method::POST).collect()
    }

    /// How often the hub has sent a verification request.
    fn questions(&self, mode: &str) -> usize {
        let asks = |passed: &&Passed| passed.method == Method::GET && passed.path.contains(mode);
        self.relay.passed().iter().filter(asks).count()
    }
}

fn changes() -> Changes {
    Changes { create: 4, update: 6, delete: 2 }
}

fn statuses(passed: &[Passed]) -> Vec<u16> {
    passed.iter().map(|passed| passed.status).collect()
}

#[tokio::test]
async fn a_peer_hub_verifies_delivers_what_a_source_publishes_and_is_left_when_the_source_goes() {
    let mut case = Case::new(PeerHub::start("sha512").await).await;
    assert_eq!(case.questions("hub.mode=subscribe&"), 1);
    // The Source may change between the run and the subscription, so the hub's first notification starts a run.
    let made = case.source.change(changes());
    assert_eq!(case.publish(&made, 100_000).await, 1);
    case.in_step().await;

    case.source.reset_requests();
    let made = case.source.change(changes());
    assert_eq!(case.publish(&made, 100_000).await, 1);
    case.in_step().await;
    let asked = case.source.requests().per_path;
    assert!(asked.keys().all(|path| !path.ends_with(".xml")), "nobody has asked for a list: {asked:?}");

    // The hub delivers several of them concurrently, in any order.
    let made = case.source.change(changes());
    let told = case.publish(&made, 2_000).await;
    assert!(told >= 3, "{told} payloads of 12 changes");
    until("all are delivered", || case.deliveries().len() == 2 + told).await;
    case.in_step().await;
    let deliveries = case.deliveries();
    assert_eq!(statuses(&deliveries), vec![202; 2 + told]);
    assert!(deliveries.iter().all(|each| each.headers["x-hub-signature"].as_bytes().starts_with(b"sha512=")));

    Run::of(case.fleet.command("source").args(["rm", &case.source.well_known()])).exits(0);
    case.hub.keeps("nothing any more", <[Kept]>::is_empty).await;
    assert_eq!(case.questions("hub.mode=unsubscribe&"), 1);
    assert!(
        case.relay.passed().iter().all(|passed| matches!(passed.status, 200 | 202)),
        "every word was a yes"
    );
}

#[tokio::test]
async fn what_was_refused_is_delivered_again_by_a_peer_hub_and_held() {
    let mut case = Case::new(PeerHub::start("sha1").await).await;
    let before = case.fleet.destination().present();
    for status in [500, 503, 429] {
        case.relay.refuse(Method::POST, status);
    }
    let made = case.source.change(changes());
    case.publish(&made, 100_000).await;
    case.in_step().await;
    assert_ne!(case.fleet.destination().present(), before);
    let deliveries = case.deliveries();
    assert_eq!(statuses(&deliveries), [500, 503, 429, 202]);
    let one = |each: &Passed| (each.path.clone(), each.headers["x-hub-signature"].clone(), each.body.clone());
    assert!(deliveries.iter().all(|each| one(each) == one(&deliveries[0])), "it is the same one, four times");
}

#[tokio::test]
async fn a_short_lease_of_a_peer_hub_is_renewed_before_it_ends() {
    let mut hub = PeerHub::start("sha256").await;
    // It is renewed after two thirds of it, so the test has to wait that long.
    hub.grant(24);
    let mut case = Case::new(hub).await;
    case.hub.grant(600);
    let first = case.hub.kept().remove(0);
    let is_renewed = |kept: &[Kept]| kept.iter().all(|now| now.expires > first.expires + 300);
    let renewed = case.hub.keeps("a renewed subscription", is_renewed).await;
    assert_eq!(renewed.len(), 1, "it is no second one");
    assert_eq!((&renewed[0].callback, &renewed[0].topic), (&first.callback, &first.topic));
    let verified = renewed[0].expires - 600;
    let ended = first.expires;
    assert!(verified < ended, "the renewal was verified at {verified}, and the first lease ended at {ended}");
    assert_eq!(case.questions("hub.mode=subscribe&"), 2);

    // Its secret has not changed.
    let made = case.source.change(changes());
    case.publish(&made, 100_000).await;
    case.in_step().await;
    assert_eq!(statuses(&case.deliveries()), [202]);
}

#[tokio::test]
async fn a_publication_is_followed_through_a_peer_hub() {
    let mut hub = PeerHub::start("sha256").await;
    let source = source(SourceSpec::default().resources(20)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::with_hub(&copy, &hub.url());

    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let relay = Relay::start().unwrap();
    let all = fleet.start(&[], &fleet.push(&relay.url(), ""));
    relay.lead_to(Api::of(&all).await.base);
    fleet.add(&served.well_known(), &[]);
    fleet.harvest(&served.well_known()).await.exits(0);
    let kept = hub.keeps("a subscription", |kept| kept.len() == 1).await.remove(0);
    assert_eq!(kept.topic, format!("{}notifications.xml", served.base));

    for _ in 0..2 {
        source.change(changes());
        copy.sync(&source.well_known()).exits(0);
        let held = originals(&copy, &[]);
        until("the fleet holds what was published", || {
            originals(&fleet.destination(), &[&served.base]) == held
        })
        .await;
    }
    let deliveries = relay.passed().into_iter().filter(|passed| passed.method == Method::POST).count();
    assert!(deliveries >= 2, "{deliveries} deliveries");
}
