//! The own hubs of a fleet's publications, over real NATS and S3 servers: any publisher takes requests, one delivers.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Response, StatusCode};
use resourcesync::Change;
use simulated_source::{SimulatedSource, SourceSpec};
use testkit::callbacks::{Callbacks, Manner};
use testkit::hub::sign;
use testkit::waiting::{found, until};
use url::form_urlencoded::Serializer;

use super::hubs::{differences, told_in};
use super::in_fleet::{CHANGES, Publishing, id, text};
use super::own_hub::covered;
use crate::common::{Service, source};
use crate::metrics::get;

/// A Source that a fleet publishes, with a hub of its own, and callbacks.
struct Case {
    all: Publishing,
    source: SimulatedSource,
    callbacks: Callbacks,
}

impl Case {
    /// Without a publisher yet.
    async fn new() -> Self {
        let source = source(SourceSpec::default().resources(12)).await;
        let all = Publishing::new().await;
        all.fleet.add(&source.well_known(), &["--publish"]);
        all.harvest(&source).await;
        Self { all, source, callbacks: Callbacks::start().unwrap() }
    }

    /// Starts a publisher, and waits until it serves the set.
    async fn publisher(&self, more: &str) -> Service {
        let base = &self.all.base;
        let own_hub = format!(", own_hub: {{base: '{base}', allow_networks: ['127.0.0.0/8']{more}}}");
        let publisher = self.all.publisher(&own_hub);
        self.all.answers(&id(&self.source), StatusCode::OK).await;
        publisher
    }

    fn url(&self, path: &str) -> String {
        format!("{}{}/{path}", self.all.base, id(&self.source))
    }

    async fn ask(&self, mode: &str, path: &str, more: &[(&str, &str)]) -> Response {
        self.ask_of(&id(&self.source), mode, path, more).await
    }

    /// Asks the hub of a set.
    async fn ask_of(&self, set: &str, mode: &str, path: &str, more: &[(&str, &str)]) -> Response {
        let url = |path: &str| format!("{}{set}/{path}", self.all.base);
        let (topic, callback) = (url("notifications.xml"), self.callbacks.url(path));
        let form = [("hub.mode", mode), ("hub.topic", &topic), ("hub.callback", &callback)];
        let form: Vec<_> = form.into_iter().chain(more.iter().copied()).collect();
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let form = "application/x-www-form-urlencoded";
        let request = self.all.client.post(url("hub")).header("content-type", form);
        request.body(body).send().await.unwrap()
    }

    /// Subscribes, and waits until one of the publishers has confirmed it.
    async fn subscribe(&self, path: &str, publishers: &[&Service]) {
        let before = confirmed(publishers);
        let answer = self.ask("subscribe", path, &[("hub.secret", "a secret of ours")]).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED, "{}", text(answer).await);
        until("the request is confirmed", || confirmed(publishers) > before).await;
    }

    /// Changes the Source, and harvests that.
    async fn change(&self) -> BTreeMap<String, Change> {
        let stored = self.all.fleet.destination();
        let before = stored.present();
        self.source.change(CHANGES);
        self.all.harvest(&self.source).await;
        differences(&before, &stored.present())
    }

    /// Waits until a callback has taken these changes, each once, in intervals that join.
    async fn takes(&self, path: &str, expected: &BTreeMap<String, Change>) {
        until(format!("{path} has the changes"), || told_in(&self.callbacks.taken(path)) == *expected).await;
    }

    /// The same where a payload may have come twice, but none is left out.
    async fn takes_again(&self, path: &str, expected: &BTreeMap<String, Change>) {
        until(format!("{path} has the changes"), || covered(&self.callbacks.taken(path)) == *expected).await;
    }
}

/// Requests that publishers have noted, since they started.
fn confirmed(publishers: &[&Service]) -> usize {
    let noted =
        |publisher: &&Service| publisher.log().matches("a subscriber has confirmed a request").count();
    publishers.iter().map(noted).sum()
}

fn has_hub(publisher: &Service) -> bool {
    publisher.log().contains("a hub is open")
}

#[tokio::test]
async fn any_publisher_takes_subscriptions_and_one_tells_each_change_once() {
    let case = Case::new().await;
    let [first, second] = [case.publisher("").await, case.publisher("").await];
    for (publisher, path) in [(&first, "/a"), (&second, "/b")] {
        case.all.relay.lead_to(publisher.publications());
        case.subscribe(path, &[&first, &second]).await;
    }
    let mut expected = BTreeMap::new();
    for _ in 0..2 {
        expected.extend(case.change().await);
        for path in ["/a", "/b"] {
            case.takes(path, &expected).await;
        }
    }
    // A publisher that stood still for longer than its lease has rightly lost its hub to the other one.
    let is_lost = [&first, &second].iter().any(|publisher| publisher.log().contains("its lease is lost"));
    assert!(has_hub(&first) != has_hub(&second) || is_lost, "one of them has the hub");
    for delivery in case.callbacks.deliveries("/a") {
        let header = |name: &str| delivery.headers[name].to_str().unwrap();
        assert_eq!(header("x-hub-signature"), sign("a secret of ours", &delivery.body));
        let links = [("self", case.url("notifications.xml")), ("hub", case.url("hub"))];
        for part in links.map(|(rel, url)| format!("<{url}>; rel=\"{rel}\"")) {
            assert!(header("link").contains(&part), "{}", header("link"));
        }
    }
    // Documents lead to the hub, at each publisher.
    for publisher in [&first, &second] {
        case.all.relay.lead_to(publisher.publications());
        let list = case.all.client.get(case.url("capabilitylist.xml")).send().await.unwrap();
        assert!(text(list).await.contains(&format!("rel=\"hub\" href=\"{}\"", case.url("hub"))));
        let topic = case.all.client.get(case.url("notifications.xml")).send().await.unwrap();
        let links: Vec<_> =
            topic.headers().get_all("link").iter().map(|link| link.to_str().unwrap()).collect();
        assert!(links.join(", ").contains(&format!("<{}>; rel=\"hub\"", case.url("hub"))), "{links:?}");
    }

    // The one with the hub is suspended, and the other one goes on. The first one may get its hub back later: a
    // delivery that is under way then may come twice.
    let (owner, other) = if has_hub(&first) { (first, second) } else { (second, first) };
    case.all.relay.lead_to(other.publications());
    owner.signal("STOP");
    expected.extend(case.change().await);
    case.takes("/a", &expected).await;
    assert!(has_hub(&other));
    owner.signal("CONT");
    expected.extend(case.change().await);
    for path in ["/a", "/b"] {
        case.takes_again(path, &expected).await;
    }

    // The publisher that has it now is killed.
    case.all.relay.lead_to(owner.publications());
    other.kill();
    expected.extend(case.change().await);
    for path in ["/a", "/b"] {
        case.takes_again(path, &expected).await;
    }
    assert_eq!(case.ask("unsubscribe", "/b", &[]).await.status(), StatusCode::ACCEPTED);
    until("it is unsubscribed", || {
        case.callbacks.asked("/b").iter().any(|asked| asked["hub.mode"] == "unsubscribe")
    })
    .await;
}

#[tokio::test]
async fn what_is_published_before_a_kill_and_not_delivered_is_delivered_after_it() {
    let case = Case::new().await;
    let mut publisher = case.publisher("").await;
    for path in ["/a", "/dead"] {
        case.subscribe(path, &[&publisher]).await;
    }
    let dead = Manner { delay: Duration::from_secs(3_600), ..Manner::default() };
    case.callbacks.behave("/dead", dead);
    let mut expected = BTreeMap::new();
    for _ in 0..2 {
        // It refuses until the publisher is killed, so the delivery is under way, or to be tried again.
        case.callbacks.behave("/a", Manner { status: 503, ..Manner::default() });
        let before = case.callbacks.count("/a");
        expected.extend(case.change().await);
        until("a delivery was refused", || case.callbacks.count("/a") > before).await;
        publisher.kill();
        case.callbacks.behave("/a", Manner::default());
        publisher = case.publisher("").await;
        // The other one, which never answers, does not hold it up.
        case.takes_again("/a", &expected).await;
    }
    assert!(case.callbacks.taken("/dead").is_empty());
    let metrics = get(&publisher.admin(), "/metrics");
    assert!(metrics.contains("thresher_publisher_subscribers 2"), "{metrics}");
}

#[tokio::test]
async fn a_request_that_was_accepted_is_verified_after_a_kill() {
    let case = Case::new().await;
    let publisher = case.publisher("").await;
    // Its challenge is answered after the kill only.
    case.callbacks.behave("/a", Manner { answer: Some("not yet".to_owned()), ..Manner::default() });
    assert_eq!(case.ask("subscribe", "/a", &[]).await.status(), StatusCode::ACCEPTED);
    publisher.kill();
    let asked = case.callbacks.asked("/a").len();
    case.callbacks.behave("/a", Manner::default());
    let publisher = case.publisher("").await;
    if asked > 0 {
        // The callback has refused before the kill: it asks again.
        assert_eq!(case.ask("subscribe", "/a", &[]).await.status(), StatusCode::ACCEPTED);
    }
    until("it is confirmed", || confirmed(&[&publisher]) > 0).await;
    let expected = case.change().await;
    case.takes("/a", &expected).await;
}

#[tokio::test]
async fn a_subscription_ends_when_the_publication_gets_other_readers() {
    let case = Case::new().await;
    let publisher = case.publisher("").await;
    case.subscribe("/a", &[&publisher]).await;
    let expected = case.change().await;
    case.takes("/a", &expected).await;
    case.all.set(&case.source, &["--publish=tokens"]);
    found("the hub needs a token", async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        (case.ask("subscribe", "/a", &[]).await.status() == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    case.change().await;
    until("it is told why", || case.callbacks.asked("/a").iter().any(|asked| asked["hub.mode"] == "denied"))
        .await;
    let asked = case.callbacks.asked("/a");
    let denial = asked.iter().find(|asked| asked["hub.mode"] == "denied").unwrap();
    assert!(denial["hub.reason"].contains("readers"), "{denial:?}");
    assert_eq!(told_in(&case.callbacks.taken("/a")), expected, "it is told nothing more");
}

#[tokio::test]
async fn hubs_that_requests_open_are_bounded_until_they_have_a_subscriber() {
    let case = Case::new().await;
    let other = source(SourceSpec::default().seed(2).resources(2)).await;
    case.all.fleet.add(&other.well_known(), &["--publish"]);
    case.all.harvest(&other).await;
    let publisher = case.publisher(", hubs_without_subscribers: 1").await;
    case.all.answers(&id(&other), StatusCode::OK).await;
    let sets = [id(&case.source), id(&other)];
    case.callbacks.behave("/no", Manner { answer: Some("no".to_owned()), ..Manner::default() });
    // The hub of one of them is open then, and closes some seconds later.
    let refused = found("a hub cannot be opened", async || {
        for set in &sets {
            let answer = case.ask_of(set, "subscribe", "/no", &[]).await;
            if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
                return Some(answer);
            }
            assert_eq!(answer.status(), StatusCode::ACCEPTED);
            until("a hub is open", || has_hub(&publisher)).await;
        }
        None
    })
    .await;
    assert_eq!(refused.headers()["retry-after"], "60");
    let said = text(refused).await;
    assert!(said.contains("1 hubs without subscribers are open"), "{said}");

    // One with a subscriber makes room for the other.
    for set in &sets {
        let before = confirmed(&[&publisher]);
        found("it is taken", async || {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let answer = case.ask_of(set, "subscribe", "/yes", &[]).await;
            (answer.status() == StatusCode::ACCEPTED).then_some(())
        })
        .await;
        until("the request is confirmed", || confirmed(&[&publisher]) > before).await;
    }
}

#[tokio::test]
async fn hubs_are_bounded_and_their_callbacks_guarded_and_without_the_setting_there_is_none() {
    let case = Case::new().await;
    let publisher = case.publisher(", subscribers_per_host: 1").await;
    case.subscribe("/a", &[&publisher]).await;
    let refused = case.ask("subscribe", "/b", &[]).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text(refused).await.contains("1 subscribers at that host"));
    assert!(case.callbacks.asked("/b").is_empty());
    assert_eq!(publisher.terminate().await, Some(0));

    // No request reaches the loopback address unless the operator allows it.
    let own_hub = format!(", own_hub: {{base: '{}hubs/'}}", case.all.base);
    let guarded = case.all.publisher(&own_hub);
    case.all.answers(&id(&case.source), StatusCode::OK).await;
    let hub = format!("{}hubs/{}/hub", case.all.base, id(&case.source));
    found("the Capability List names the hub at its own base", async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let list = case.all.client.get(case.url("capabilitylist.xml")).send().await.unwrap();
        text(list).await.contains(&hub).then_some(())
    })
    .await;
    let said = text(case.all.client.get(&hub).send().await.unwrap()).await;
    assert!(said.starts_with("This is the WebSub hub of"), "{said}");
    assert_eq!(case.ask("subscribe", "/c", &[]).await.status(), StatusCode::ACCEPTED);
    until("it cannot be asked", || guarded.log().contains("cannot be asked to confirm")).await;
    assert!(case.callbacks.asked("/c").is_empty());
    assert_eq!(guarded.terminate().await, Some(0));

    let _plain = case.all.publisher("");
    case.all.answers(&id(&case.source), StatusCode::OK).await;
    let answer = case.ask("subscribe", "/d", &[]).await;
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
}
