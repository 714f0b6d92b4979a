//! The publisher's own hub: subscriptions, deliveries, and what goes wrong with them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use jiff::Timestamp;
use reqwest::{Client, Response, StatusCode};
use resourcesync::Change;
use simulated_source::{Changes, SimulatedSource, SourceSpec};
use testkit::callbacks::{Callbacks, Manner};
use testkit::hub::sign;
use testkit::waiting::{found, until};
use url::form_urlencoded::Serializer;

use super::Served;
use super::hubs::{Heard, changed, changed_by, heard, told_in};
use crate::common::{Destination, source};
use crate::metrics::{get, python};

const LOOPBACK: [&str; 3] = ["--own-hub", "--allow-address", "127.0.0.0/8"];

/// A publication with a hub of its own, and callbacks.
struct Case {
    source: SimulatedSource,
    copy: Destination,
    served: Served,
    options: Vec<&'static str>,
    callbacks: Callbacks,
}

impl Case {
    async fn new(options: &[&'static str]) -> Self {
        Self::of(20, options).await
    }

    /// With so many resources.
    async fn of(resources: u64, options: &[&'static str]) -> Self {
        let source = source(SourceSpec::default().resources(resources)).await;
        let copy = Destination::directory();
        copy.sync(&source.well_known()).exits(0);
        let options = options.to_vec();
        let served = Served::with(&copy, &options);
        Self { source, copy, served, options, callbacks: Callbacks::start().unwrap() }
    }

    /// Kills the publisher with SIGKILL, and starts it again.
    fn restart(&mut self) {
        self.served.restart_with(&self.copy, &self.options);
    }

    fn topic(&self) -> String {
        format!("{}notifications.xml", self.served.base)
    }

    fn hub(&self) -> String {
        format!("{}hub", self.served.base)
    }

    async fn ask(&self, mode: &str, path: &str, more: &[(&str, &str)]) -> Response {
        let (topic, callback) = (self.topic(), self.callbacks.url(path));
        let form = [("hub.mode", mode), ("hub.topic", &topic), ("hub.callback", &callback)];
        let form: Vec<_> = form.into_iter().chain(more.iter().copied()).collect();
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let client = Client::builder().no_proxy().build().unwrap();
        let request = client.post(self.hub()).header("content-type", "application/x-www-form-urlencoded");
        request.body(body).send().await.expect("an answer")
    }

    async fn subscribe(&self, path: &str, more: &[(&str, &str)]) {
        let before = self.callbacks.asked(path).len();
        assert_eq!(self.ask("subscribe", path, more).await.status(), StatusCode::ACCEPTED);
        until("the callback is asked", || self.callbacks.asked(path).len() > before).await;
    }

    /// Subscribes each of some callbacks, new ones, and waits until that is noted.
    async fn subscribe_all(&self, paths: &[&str], more: &[(&str, &str)]) {
        for path in paths {
            self.subscribe(path, more).await;
        }
        self.status("subscribers", |count| count == paths.len() as u64).await;
    }

    /// Waits until a count of the hub is as expected.
    async fn status(&self, name: &str, is_so: impl Fn(u64) -> bool) {
        let client = Client::builder().no_proxy().build().unwrap();
        let look = async || {
            let said = text(client.get(self.hub()).send().await.ok()?).await;
            let line = said.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            let count = line.and_then(|count| count.parse().ok());
            tokio::time::sleep(Duration::from_millis(20)).await;
            count.filter(|count| is_so(*count))
        };
        found(format!("the hub counts {name}"), look).await;
    }

    async fn change(&self) -> BTreeMap<String, Change> {
        changed(&self.source, &self.copy).await
    }

    /// Waits until a callback has taken these changes, in intervals that join.
    async fn takes(&self, path: &str, expected: &BTreeMap<String, Change>) {
        until(format!("{path} has the changes"), || told_in(&self.callbacks.taken(path)) == *expected).await;
    }

    /// The same after a kill: changes may come again, and none is left out.
    async fn takes_again(&self, path: &str, expected: &BTreeMap<String, Change>) {
        until(format!("{path} has the changes"), || covered(&self.callbacks.taken(path)) == *expected).await;
    }
}

/// The last state of each resource in payloads whose intervals join or overlap.
pub(super) fn covered(payloads: &[Bytes]) -> BTreeMap<String, Change> {
    let mut last: Option<Timestamp> = None;
    let mut told = BTreeMap::new();
    for Heard { from, until, changes } in payloads.iter().map(|payload| heard(payload)) {
        assert!(last.is_none_or(|last| from <= last), "a gap between {last:?} and {from}");
        last = last.max(Some(until));
        told.extend(changes.into_iter().map(|(original, change, _)| (original, change)));
    }
    told
}

#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
async fn text(response: Response) -> String {
    response.text().await.unwrap()
}

#[tokio::test]
async fn subscribers_are_verified_told_in_order_and_unsubscribed() {
    let case = Case::new(&LOOPBACK).await;
    let more = [("hub.secret", "a secret of ours"), ("hub.lease_seconds", "1000")];
    case.subscribe("/a", &more).await;
    case.subscribe("/b", &[]).await;
    case.status("subscribers", |count| count == 2).await;
    let asked = case.callbacks.asked("/a").remove(0);
    assert_eq!(asked["hub.mode"], "subscribe");
    assert_eq!((asked["hub.topic"].as_str(), asked["hub.lease_seconds"].as_str()), (&*case.topic(), "1000"));
    assert_eq!(case.callbacks.asked("/b")[0]["hub.lease_seconds"], "864000");

    let mut expected = BTreeMap::new();
    for _ in 0..3 {
        expected.extend(case.change().await);
        case.takes("/a", &expected).await;
        case.takes("/b", &expected).await;
    }
    for delivery in case.callbacks.deliveries("/a") {
        let header = |name: &str| delivery.headers[name].to_str().unwrap();
        assert_eq!(header("content-type"), "application/xml");
        assert_eq!(header("x-hub-signature"), sign("a secret of ours", &delivery.body));
        for part in [format!("<{}>; rel=\"self\"", case.topic()), format!("<{}>; rel=\"hub\"", case.hub())] {
            assert!(header("link").contains(&part), "{}", header("link"));
        }
    }
    assert!(case.callbacks.deliveries("/b").iter().all(|one| !one.headers.contains_key("x-hub-signature")));

    assert_eq!(case.ask("unsubscribe", "/a", &[]).await.status(), StatusCode::ACCEPTED);
    case.status("subscribers", |count| count == 1).await;
    assert_eq!(case.callbacks.asked("/a").last().unwrap()["hub.mode"], "unsubscribe");
    let before = case.callbacks.deliveries("/a").len();
    expected.extend(case.change().await);
    case.takes("/b", &expected).await;
    assert_eq!(case.callbacks.deliveries("/a").len(), before);

    let client = Client::builder().no_proxy().build().unwrap();
    let found = client.get(case.topic()).send().await.unwrap();
    let links: Vec<_> = found.headers().get_all("link").iter().map(|link| link.to_str().unwrap()).collect();
    assert!(links.join(", ").contains(&format!("<{}>; rel=\"hub\"", case.hub())), "{links:?}");
    let list = client.get(format!("{}capabilitylist.xml", case.served.base)).send().await.unwrap();
    assert!(text(list).await.contains(&format!("rel=\"hub\" href=\"{}\"", case.hub())));
}

#[tokio::test]
async fn what_a_subscriber_does_not_confirm_changes_nothing() {
    let case = Case::new(&LOOPBACK).await;
    case.callbacks.behave("/no", Manner { answer: Some("no".to_owned()), ..Manner::default() });
    assert_eq!(case.ask("subscribe", "/no", &[]).await.status(), StatusCode::ACCEPTED);
    case.status("unverified", |count| count == 1).await;
    case.status("subscribers", |count| count == 0).await;
    case.subscribe_all(&["/yes"], &[]).await;
    case.callbacks.behave("/yes", Manner { answer: Some("no".to_owned()), ..Manner::default() });
    assert_eq!(case.ask("unsubscribe", "/yes", &[]).await.status(), StatusCode::ACCEPTED);
    case.status("unverified", |count| count == 2).await;
    let expected = case.change().await;
    case.takes("/yes", &expected).await;
    assert!(case.callbacks.deliveries("/no").is_empty());
}

#[tokio::test]
async fn every_subscriber_gets_all_through_kills_in_the_middle_of_deliveries() {
    let mut case = Case::new(&LOOPBACK).await;
    let slow = Manner { delay: Duration::from_millis(200), ..Manner::default() };
    case.subscribe_all(&["/a", "/b", "/slow", "/down"], &[("hub.secret", "s")]).await;
    case.callbacks.behave("/slow", slow);
    case.callbacks.behave("/down", Manner { status: 503, ..Manner::default() });
    let mut expected = BTreeMap::new();
    for round in 0..3 {
        let before = case.callbacks.taken("/a").len();
        expected.extend(case.change().await);
        until("a delivery is under way", || case.callbacks.taken("/a").len() > before).await;
        case.restart();
        case.status("subscribers", |count| count == 4).await;
        if round == 1 {
            case.callbacks.behave("/down", Manner::default());
        }
    }
    for path in ["/a", "/b", "/slow", "/down"] {
        case.takes_again(path, &expected).await;
    }
}

#[tokio::test]
async fn acc_6_twenty_subscribers_get_each_of_many_changes_also_those_while_the_hub_is_down() {
    const SUBSCRIBERS: usize = 20;
    const RESOURCES: u64 = 1_200;
    let mut case = Case::of(RESOURCES, &LOOPBACK).await;
    let paths: Vec<String> = (0..SUBSCRIBERS).map(|number| format!("/{number}")).collect();
    let named: Vec<&str> = paths.iter().map(String::as_str).collect();
    case.subscribe_all(&named, &[]).await;
    let mut expected = BTreeMap::new();
    for round in 0..4 {
        let is_down = round == 2;
        if is_down {
            case.served.stop();
        }
        // Each round changes others, in more changes than a payload has room for.
        let changes = Changes { create: 100, update: 900, delete: 100 };
        expected.extend(changed_by(&case.source, &case.copy, changes).await);
        if is_down {
            expected.extend(changed_by(&case.source, &case.copy, changes).await);
            case.restart();
        }
        for path in &paths {
            case.takes_again(path, &expected).await;
        }
    }
    // Only what was told around the kill may come twice.
    for path in &paths {
        let told: usize = case.callbacks.taken(path).iter().map(|payload| heard(payload).changes.len()).sum();
        assert!(told >= expected.len() && case.callbacks.taken(path).len() > 5, "{path}: {told}");
    }
}

#[tokio::test]
async fn a_slow_and_a_dead_subscriber_do_not_delay_others() {
    let case = Case::new(&LOOPBACK).await;
    case.subscribe_all(&["/good", "/dead", "/slow"], &[]).await;
    case.callbacks.behave("/dead", Manner { status: 500, ..Manner::default() });
    case.callbacks.behave("/slow", Manner { delay: Duration::from_secs(3_600), ..Manner::default() });
    let mut expected = BTreeMap::new();
    for _ in 0..3 {
        expected.extend(case.change().await);
        case.takes("/good", &expected).await;
    }
    assert!(case.callbacks.taken("/dead").is_empty() && case.callbacks.taken("/slow").is_empty());
    // When it is back, it gets all of it, in order.
    case.callbacks.behave("/dead", Manner::default());
    case.takes("/dead", &expected).await;
}

#[tokio::test]
async fn a_lease_ends_and_what_comes_without_it_is_not_told() {
    let options =
        ["--own-hub", "--allow-address", "127.0.0.1", "--hub-lease", "2s", "--metrics", "127.0.0.1:0"];
    let mut case = Case::new(&options).await;
    case.subscribe("/a", &[("hub.lease_seconds", "100000")]).await;
    assert_eq!(case.callbacks.asked("/a")[0]["hub.lease_seconds"], "2");
    // Its end is counted. The subscriber itself may be gone before it is looked for.
    let address = case.served.metrics.clone().expect("it says where");
    let over = "thresher_publisher_subscriptions_ended_total{reason=\"lease-over\"} 1";
    found("the lease is over", async || {
        tokio::time::sleep(Duration::from_millis(20)).await;
        get(&address, "/metrics").contains(over).then_some(())
    })
    .await;
    case.status("subscribers", |count| count == 0).await;
    case.change().await;
    let client = Client::builder().no_proxy().build().unwrap();
    found("the changes are published", async || {
        let topic = text(client.get(case.topic()).send().await.ok()?).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        (!topic.is_empty()).then_some(())
    })
    .await;
    case.options = LOOPBACK.to_vec();
    case.restart();
    case.subscribe_all(&["/a"], &[]).await;
    let expected = case.change().await;
    case.takes("/a", &expected).await;
}

#[tokio::test]
async fn a_subscription_ends_for_410_and_after_failures_with_a_reason() {
    let mut options = LOOPBACK.to_vec();
    options.extend(["--hub-give-up", "2s"]);
    let case = Case::new(&options).await;
    case.subscribe_all(&["/gone", "/failing"], &[]).await;
    case.callbacks.behave("/gone", Manner { status: 410, ..Manner::default() });
    case.callbacks.behave("/failing", Manner { status: 301, ..Manner::default() });
    case.change().await;
    case.status("subscribers", |count| count == 0).await;
    case.status("given_up", |count| count == 1).await;
    until("it is told why", || case.callbacks.asked("/failing").len() == 2).await;
    let denial = case.callbacks.asked("/failing").remove(1);
    assert_eq!(denial["hub.mode"], "denied");
    assert!(denial["hub.reason"].contains("no delivery was taken"), "{denial:?}");
    assert_eq!(case.callbacks.deliveries("/gone").len(), 1);
}

#[tokio::test]
async fn subscribers_are_bounded_and_callbacks_are_guarded() {
    let mut options = LOOPBACK.to_vec();
    options.extend(["--hub-subscribers-per-host", "2"]);
    let case = Case::new(&options).await;
    case.subscribe_all(&["/a", "/b"], &[]).await;
    let refused = case.ask("subscribe", "/c", &[]).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text(refused).await.contains("2 subscribers at that host"));
    // A renewal needs no room.
    case.subscribe("/a", &[]).await;

    let guarded = Case::new(&["--own-hub"]).await;
    assert_eq!(guarded.ask("subscribe", "/a", &[]).await.status(), StatusCode::ACCEPTED);
    guarded.status("unverified", |count| count == 1).await;
    assert!(guarded.callbacks.asked("/a").is_empty(), "no request reached the loopback address");
}

#[tokio::test]
async fn subscriptions_that_are_confirmed_at_the_same_time_keep_to_the_limit() {
    let mut options = LOOPBACK.to_vec();
    options.extend(["--hub-subscribers-per-host", "2"]);
    let case = Case::new(&options).await;
    let paths: Vec<String> = (0..8).map(|number| format!("/{number}")).collect();
    join_all(paths.iter().map(|path| case.ask("subscribe", path, &[]))).await;
    case.status("refused", |count| count == 6).await;
    case.status("subscribers", |count| count == 2).await;
}

#[tokio::test]
async fn requests_that_are_none_are_refused() {
    let case = Case::new(&LOOPBACK).await;
    let client = Client::builder().no_proxy().build().unwrap();
    let form = "application/x-www-form-urlencoded";
    let whole = format!("hub.mode=subscribe&hub.topic={}&hub.callback=http://127.0.0.1:1/", case.topic());
    for (media_type, body, status) in [
        ("text/plain", whole.clone(), 415),
        (form, String::new(), 400),
        (form, whole.replace("subscribe", "publish"), 400),
        (form, whole.replace("http://127.0.0.1:1/", "ftp://e.org/"), 400),
        (form, whole.replace("notifications.xml", "other.xml"), 404),
        (form, format!("{whole}&x={}", "x".repeat(20_000)), 413),
    ] {
        let request = client.post(case.hub()).header("content-type", media_type).body(body.clone());
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{body}");
    }
    let other = client.post(case.topic()).body("").send().await.unwrap();
    assert_eq!(other.status(), StatusCode::METHOD_NOT_ALLOWED);
    case.status("verified", |count| count == 0).await;

    let hub = Case::new(&[]).await;
    let (hub, _served) = (hub.hub(), hub.served);
    assert_eq!(client.post(&hub).body("").send().await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(client.get(&hub).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn acc_6_a_hundred_subscribers_get_every_change_and_intervals_join() {
    let case = Case::new(&LOOPBACK).await;
    let paths: Vec<String> = (0..100).map(|number| format!("/{number}")).collect();
    let all: Vec<&str> = paths.iter().map(String::as_str).collect();
    case.subscribe_all(&all, &[("hub.secret", "s")]).await;
    let mut expected = BTreeMap::new();
    for _ in 0..5 {
        case.source.change(Changes { create: 10, update: 10, delete: 5 });
        expected.extend(case.change().await);
    }
    for path in all {
        case.takes(path, &expected).await;
    }
}

#[tokio::test]
async fn its_metrics_are_those_of_the_page() {
    let mut options = LOOPBACK.to_vec();
    options.extend(["--metrics", "127.0.0.1:0"]);
    let case = Case::new(&options).await;
    let address = case.served.metrics.clone().expect("it says where");
    assert_eq!(get(&address, "/readyz"), "ready\n");
    case.subscribe_all(&["/a"], &[]).await;
    let expected = case.change().await;
    case.takes("/a", &expected).await;
    let said = get(&address, "/metrics");
    assert!(said.contains("thresher_publisher_subscribers 1"), "{said}");
    let mut command = python("deploy/tests/exposed.py");
    let mut checked = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    checked.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
    let checked = checked.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}\n{said}", String::from_utf8_lossy(&checked.stdout));
}
