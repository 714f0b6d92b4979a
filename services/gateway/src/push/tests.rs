//! Callbacks over HTTP: real subscriptions in NATS, a bus in this process, and honest and hostile clients.

use std::net::SocketAddr;
use std::time::Duration;

use ::bus::{Bus, ConsumerSpec, Filter, MemoryBus};
use control::{
    AdvertisedChannel, Config, Control, Spec, Subscription, SubscriptionId, SubscriptionState,
    SubscriptionStep,
};
use fleet::PushConfig;
use jiff::Timestamp;
use model::{ChangeNotification, RunId, SetId, SourceId, SystemClock};
use secrets::Vars;
use service::{Metrics, ServiceInfo};
use testkit::servers::NatsFixture;
use testkit::waiting::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use websub::{Method, Signature};

use super::*;

const TOPIC: &str = "http://example.com/change/";
const BODY: &str = "<urlset/>";

/// Listening callbacks with one subscription.
struct Case {
    push: Push,
    control: Control,
    bus: Arc<MemoryBus>,
    callbacks: Callbacks,
    metrics: Metrics,
    address: SocketAddr,
    id: SubscriptionId,
}

impl Case {
    /// With a subscription that was requested from its hub.
    async fn asked() -> Self {
        Self::with(DeliveryLimits {
            body_bytes: 1_000,
            body_time: Duration::from_secs(2),
            per_second: NonZeroU32::new(1_000).unwrap(),
            at_a_time: 4,
            queue_time: Duration::from_millis(200),
        })
        .await
    }

    async fn with(limits: DeliveryLimits) -> Self {
        let config = Config {
            servers: vec![NatsFixture::get().await.url],
            namespace: format!("t-{}", RunId::fresh()),
            ..Config::default()
        };
        let control = Control::connect(&config).await.unwrap();
        let push = r#"{"public_url": "http://push.example/", "key": {"env": "KEY"}, "previous_keys": [{"env": "OLD"}]}"#;
        let vars = Vars::default().with("KEY", &"k".repeat(32)).with("OLD", &"o".repeat(32));
        let push = serde_json::from_str::<PushConfig>(push).unwrap().open(&vars).unwrap().unwrap();
        let offered = AdvertisedChannel {
            source: source(),
            set: SetId::new("http://example.com/caps"),
            topic: TOPIC.to_owned(),
            hubs: vec!["http://hub/".to_owned()],
        };
        let subscriptions = control.subscriptions().clone();
        let now = Timestamp::now();
        let id = subscriptions.want(&offered, push.keys().current().name(), now).await.unwrap().id.clone();
        subscriptions.step(&id, &SubscriptionStep::Ask, now).await.unwrap();
        let bus = Arc::new(MemoryBus::new(3));
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let fleet = Fleet {
            push: push.clone(),
            view: subscriptions.view().await.unwrap(),
            subscriptions,
            hints: control.hints().clone(),
            sources: control.sources().view().await.unwrap(),
            bus: Arc::clone(&bus) as Arc<dyn Bus>,
            clock: Arc::new(SystemClock),
        };
        let callbacks = Callbacks::new(fleet, limits, GatewayMetrics::register(&metrics));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, callbacks.router()).into_future());
        Self { push, control, bus, callbacks, metrics, address, id }
    }

    /// With a subscription that its hub has verified.
    async fn active() -> Self {
        let case = Self::asked().await;
        assert_eq!(
            case.get(&case.path(), &question("subscribe", TOPIC)).await,
            (200, "a challenge".to_owned())
        );
        case
    }

    fn path(&self) -> String {
        self.push.callback(self.push.keys().current(), self.id.as_str()).path().to_owned()
    }

    fn signed(&self, body: &str) -> String {
        let secret = self.push.keys().current().secret(self.id.as_str());
        format!("X-Hub-Signature: {}\r\n", Signature::new(Method::Sha256, &secret, body.as_bytes()))
    }

    async fn get(&self, path: &str, query: &str) -> (u16, String) {
        self.say(&format!("GET {path}?{query} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")).await
    }

    async fn post(&self, path: &str, headers: &str, body: &str) -> u16 {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        self.say(&format!("{head}{body}")).await.0
    }

    /// Sends a text, and reads the response to its end.
    async fn say(&self, text: &str) -> (u16, String) {
        let mut line = TcpStream::connect(self.address).await.unwrap();
        line.write_all(text.as_bytes()).await.unwrap();
        answer(line).await
    }

    /// The messages in the queue.
    async fn queued(&self) -> Vec<ChangeNotification> {
        let filter = Filter::Notices(source());
        self.bus.open(ConsumerSpec::new(filter.clone(), 10, Duration::from_secs(60), 5)).await.unwrap();
        let mut notices = Vec::new();
        for delivery in self.bus.pull(&filter, 10, Duration::from_millis(10)).await.unwrap() {
            notices.push(Arc::unwrap_or_clone(delivery.payload.read().unwrap()));
            delivery.ack().await.unwrap();
        }
        notices
    }

    fn counted(&self, verdict: &str) -> u64 {
        let line = format!("thresher_gateway_deliveries_total{{verdict=\"{verdict}\"}} ");
        let text = self.metrics.encode();
        let found =
            text.lines().find_map(|text| text.strip_prefix(&line)).expect("it is shown from the beginning");
        found.parse().unwrap()
    }

    async fn subscription(&self) -> Arc<Subscription> {
        self.control.subscriptions().get(&self.id).await.unwrap().value
    }
}

fn source() -> SourceId {
    SourceId::of_entry(&"http://example.com/".parse().unwrap())
}

fn question(mode: &str, topic: &str) -> String {
    let mut query = format!("hub.mode={mode}&hub.challenge=a%20challenge&hub.lease_seconds=600&hub.topic=");
    query.extend(url::form_urlencoded::byte_serialize(topic.as_bytes()));
    query
}

/// The status and the body of a response; 0 where there is none.
async fn answer(mut line: TcpStream) -> (u16, String) {
    let mut text = String::new();
    let _ = line.read_to_string(&mut text).await;
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

#[tokio::test]
async fn a_hub_that_asks_back_gets_its_challenge_and_nobody_else_gets_anything() {
    let case = Case::asked().await;
    let path = case.path();
    for (query, why) in [
        (question("subscribe", "http://example.com/other/"), "another channel"),
        (question("unsubscribe", TOPIC), "the opposite"),
        ("hub.mode=subscribe".to_owned(), "half a question"),
        (String::new(), "no question"),
    ] {
        assert_eq!(case.get(&path, &query).await.0, 404, "{why}");
    }
    let guessed = format!("/push/{}/{}", case.id, "a".repeat(32));
    assert_eq!(case.get(&guessed, &question("subscribe", TOPIC)).await.0, 404, "a guess");
    let under_another = case.push.callback(case.push.keys().all().last().unwrap(), case.id.as_str());
    assert_eq!(
        case.get(under_another.path(), &question("subscribe", TOPIC)).await.0,
        404,
        "an earlier key's"
    );
    assert_eq!(case.subscription().await.state, SubscriptionState::Pending);

    assert_eq!(case.get(&path, &question("subscribe", TOPIC)).await, (200, "a challenge".to_owned()));
    let now = Timestamp::now();
    let SubscriptionState::Active { until, .. } = case.subscription().await.state else {
        panic!("it is not active")
    };
    assert!((590..=600).contains(&until.duration_since(now).as_secs()), "{until}");
}

#[tokio::test]
async fn an_end_is_confirmed_once_it_is_wanted_also_when_the_hub_asks_again() {
    let case = Case::active().await;
    let path = case.path();
    let subscriptions = case.control.subscriptions();
    let now = Timestamp::now();
    subscriptions.step(&case.id, &SubscriptionStep::Unwanted, now).await.unwrap();
    subscriptions.step(&case.id, &SubscriptionStep::Ask, now).await.unwrap();
    until("the view has heard of it", || {
        case.callbacks.0.fleet.view.get(&case.id).is_some_and(|seen| seen.state == SubscriptionState::Ending)
    })
    .await;
    assert_eq!(case.post(&path, &case.signed(BODY), BODY).await, 410, "nobody wants it any more");
    for _ in 0..2 {
        assert_eq!(case.get(&path, &question("unsubscribe", TOPIC)).await, (200, "a challenge".to_owned()));
        until("the view has heard of it", || case.callbacks.0.fleet.view.get(&case.id).is_none()).await;
    }
    assert_eq!(case.get(&path, &question("subscribe", TOPIC)).await.0, 404);
    assert_eq!(case.post(&path, &case.signed(BODY), BODY).await, 410);
    assert_eq!((case.counted("ended"), case.queued().await.len()), (2, 0));
}

#[tokio::test]
async fn a_hub_that_says_no_is_believed() {
    let case = Case::active().await;
    assert_eq!(case.get(&case.path(), "hub.mode=denied&hub.topic=x").await.0, 404, "about another channel");
    assert_eq!(case.get(&case.path(), "hub.mode=denied&hub.reason=full").await.0, 200);
    let SubscriptionState::Denied { reason, .. } = case.subscription().await.state.clone() else {
        panic!("it goes on")
    };
    assert_eq!(reason.as_deref(), Some("full"));
}

#[tokio::test]
async fn an_honest_delivery_is_queued_as_it_came_and_once() {
    let case = Case::active().await;
    let body = "<urlset>ü</urlset>";
    let links = format!("Link: <{TOPIC}>; rel=self, <http://hub/>; rel=hub\r\n{}", case.signed(body));
    assert_eq!(case.post(&case.path(), &links, body).await, 202);
    assert_eq!(case.post(&case.path(), &links, body).await, 202, "sent again");
    let queued = case.queued().await;
    assert_eq!(queued.len(), 1);
    assert_eq!(queued[0].body, body.as_bytes());
    assert_eq!((&queued[0].source, queued[0].topic.as_str()), (&source(), TOPIC));
    assert_eq!((case.counted("queued"), case.counted("duplicate")), (1, 1));
    case.callbacks.0.counts.write(case.control.subscriptions(), Timestamp::now()).await;
    assert_eq!(case.subscription().await.received.queued, 1);
}

#[tokio::test]
async fn a_hub_may_write_the_url_of_a_channel_in_another_way() {
    let case = Case::active().await;
    for (n, topic) in ["HTTP://EXAMPLE.com:80/change/", "http://example.com/a/../change/"].iter().enumerate()
    {
        let body = format!("<urlset n=\"{n}\"/>");
        let headers = format!("Link: <{topic}>; rel=self\r\n{}", case.signed(&body));
        assert_eq!(case.post(&case.path(), &headers, &body).await, 202);
    }
    assert_eq!((case.counted("queued"), case.counted("misdirected")), (2, 0));
}

#[tokio::test]
async fn what_is_not_honest_is_answered_like_what_is_and_dropped() {
    let case = Case::active().await;
    let path = case.path();
    let elsewhere = format!("Link: <http://example.com/other/>; rel=self\r\n{}", case.signed(BODY));
    for (headers, body, verdict) in [
        (String::new(), BODY, "unsigned"),
        ("X-Hub-Signature: nonsense\r\n".to_owned(), BODY, "unreadable"),
        (case.signed(BODY), "<urlset></urlset>", "bad-signature"),
        (elsewhere, BODY, "misdirected"),
    ] {
        assert_eq!(case.post(&path, &headers, body).await, 202, "{verdict}");
        assert_eq!(case.counted(verdict), 1, "{verdict}");
    }
    let guessed = format!("/push/{}/{}", case.id, "a".repeat(32));
    assert_eq!(case.post(&guessed, &case.signed(BODY), BODY).await, 404);
    assert_eq!((case.counted("unknown"), case.queued().await.len()), (1, 0));
    case.callbacks.0.counts.write(case.control.subscriptions(), Timestamp::now()).await;
    assert_eq!(
        (case.subscription().await.received.dropped, case.subscription().await.received.queued),
        (4, 0)
    );
}

#[tokio::test]
async fn what_comes_unsigned_is_a_hint_where_the_operator_admits_it_and_a_wrong_signature_never_is() {
    let case = Case::active().await;
    let entry = "http://example.com/".parse().unwrap();
    let admits = SourceSpec::from(Spec { push: model::Push::Unsigned, ..Spec::new(entry) });
    case.control.sources().create(&admits).await.unwrap();
    until("the Source is known", || case.callbacks.0.fleet.sources.get(&source()).is_some()).await;
    assert_eq!(case.post(&case.path(), "X-Hub-Signature: sha256=00\r\n", BODY).await, 202);
    assert!(case.control.hints().get(&source()).await.unwrap().is_none());
    assert_eq!(case.post(&case.path(), "", BODY).await, 202);
    let hint = case.control.hints().get(&source()).await.unwrap().expect("it is given");
    assert!(hint.unproved && hint.by.starts_with("hub http://hub/"), "{hint:?}");
    assert_eq!((case.counted("hinted"), case.counted("unsigned")), (1, 0));
    assert_eq!(case.queued().await.len(), 0, "nothing of it is planned");
    assert_eq!(case.post(&case.path(), &case.signed(BODY), BODY).await, 202);
    assert_eq!(case.queued().await.len(), 1, "what is signed is taken as ever");
}

#[tokio::test]
async fn a_payload_that_is_too_long_is_not_read_whether_it_says_so_or_not() {
    let case = Case::active().await;
    let long = "x".repeat(1_001);
    assert_eq!(case.post(&case.path(), &case.signed(&long), &long).await, 413);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        case.path()
    );
    assert_eq!(case.say(&format!("{head}3e9\r\n{long}\r\n0\r\n\r\n")).await.0, 413);
    assert_eq!((case.counted("oversized"), case.queued().await.len()), (2, 0));
    let longest = &long[1..];
    assert_eq!(case.post(&case.path(), &case.signed(longest), longest).await, 202);
}

#[tokio::test]
async fn who_sends_a_byte_now_and_then_is_cut_off_and_others_are_served_meanwhile() {
    let case = Case::active().await;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 9\r\n\r\n<",
        case.path()
    );
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut line = TcpStream::connect(case.address).await.unwrap();
        line.write_all(head.as_bytes()).await.unwrap();
        slow.push(line);
    }
    assert_eq!(case.post(&case.path(), &case.signed(BODY), BODY).await, 202);
    for line in slow {
        assert_eq!(answer(line).await.0, 408);
    }
    assert_eq!((case.counted("slow"), case.counted("queued")), (3, 1));
}

#[tokio::test]
async fn a_flood_is_held_up() {
    let limits = DeliveryLimits {
        per_second: NonZeroU32::new(10).unwrap(),
        ..Case::asked().await.callbacks.0.limits.clone()
    };
    let case = Case::with(limits).await;
    case.get(&case.path(), &question("subscribe", TOPIC)).await;
    let mut refused = 0;
    for _ in 0..60 {
        match case.post(&case.path(), "", BODY).await {
            202 => {}
            429 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(refused >= 30, "{refused}");
    assert_eq!((case.counted("rate-limited"), case.queued().await.len()), (refused, 0));
}

#[tokio::test]
async fn a_flood_at_a_callback_that_has_ended_asks_the_fleet_no_more_often_than_another() {
    let limits = DeliveryLimits {
        per_second: NonZeroU32::new(10).unwrap(),
        ..Case::asked().await.callbacks.0.limits.clone()
    };
    let case = Case::with(limits).await;
    let subscriptions = case.control.subscriptions();
    let now = Timestamp::now();
    let denied = SubscriptionStep::Deny { topic: None, reason: None };
    for step in [denied, SubscriptionStep::Unwanted] {
        subscriptions.step(&case.id, &step, now).await.unwrap();
    }
    until("the view has heard of it", || case.callbacks.0.fleet.view.get(&case.id).is_none()).await;
    let mut refused = 0;
    for n in 0..60 {
        let answer = match n % 2 {
            0 => case.post(&case.path(), "", BODY).await,
            _ => case.get(&case.path(), &question("unsubscribe", TOPIC)).await.0,
        };
        match answer {
            200 | 410 => {}
            429 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(refused >= 30, "{refused}");
    assert!(case.counted("rate-limited") > 0);
}

#[tokio::test]
async fn what_cannot_be_queued_is_not_answered_with_a_yes() {
    let case = Case::active().await;
    // As many as the queue of this bus holds.
    for n in 0..3 {
        let body = format!("<urlset n=\"{n}\"/>");
        assert_eq!(case.post(&case.path(), &case.signed(&body), &body).await, 202);
    }
    assert_eq!(case.post(&case.path(), &case.signed(BODY), BODY).await, 503);
    assert_eq!((case.counted("not-queued"), case.queued().await.len()), (1, 3));
    assert_eq!(case.post(&case.path(), &case.signed(BODY), BODY).await, 202, "the hub sends it again");
    assert_eq!(case.queued().await.len(), 1);
}
