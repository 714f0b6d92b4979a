//! A keeper on a real control store, and a scripted hub.

use control::{Config, DeliveryStats, Spec, SubscriptionState};
use fleet::PushConfig;
use jiff::SignedDuration;
use model::{ManualClock, RunId, SetId, SourceId};
use secrets::Vars;
use testkit::scripted::{Reply, ScriptedServer};
use testkit::servers::NatsFixture;
use testkit::waiting::found;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;
use web::WebConfig;

use super::*;
use crate::notifier::periodic;

const TOPIC: &str = "http://example.com/change/";

struct Case {
    control: Control,
    hub: ScriptedServer,
    clock: Arc<ManualClock>,
    source: SourceSpec,
    keeper: SubscriptionManager,
    stop: CancellationToken,
}

fn push(key: &str, earlier: &[&str]) -> Push {
    let vars = Vars::default().with("A", &"a".repeat(32)).with("B", &"b".repeat(32));
    let earlier: Vec<String> = earlier.iter().map(|name| format!(r#"{{"env": "{name}"}}"#)).collect();
    let config = format!(
        r#"{{"public_url": "http://push.example/", "key": {{"env": "{key}"}}, "previous_keys": [{}]}}"#,
        earlier.join(",")
    );
    serde_json::from_str::<PushConfig>(&config).unwrap().open(&vars).unwrap().unwrap()
}

impl Case {
    async fn new() -> Self {
        let config = Config {
            servers: vec![NatsFixture::get().await.url],
            namespace: format!("t-{}", RunId::fresh()),
            ..Config::default()
        };
        let control = Control::connect(&config).await.unwrap();
        let source = SourceSpec::new("http://example.com/".parse().unwrap());
        control.sources().create(&source).await.unwrap();
        let clock = Arc::new(ManualClock::new("2026-03-01T12:00:00Z".parse().unwrap()));
        let keeper = SubscriptionManager {
            me: MemberId::fresh("me"),
            push: push("A", &[]),
            sources: control.sources().view().await.unwrap(),
            subscriptions: control.subscriptions().view().await.unwrap(),
            members: control.members().view().await.unwrap(),
            client: Client::new(WebConfig::default()).unwrap(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            metrics: SchedulerMetrics::default(),
            control: control.clone(),
        };
        let hub = ScriptedServer::start().await.unwrap();
        let stop = CancellationToken::new();
        Self { control, hub, clock, source, keeper, stop }
    }

    /// Requests the channel, as a run that found it does.
    async fn want(&self) -> SubscriptionId {
        self.want_at(self.hub.uri("/hub")).await
    }

    /// The same, at this hub.
    async fn want_at(&self, hub: String) -> SubscriptionId {
        let offered = AdvertisedChannel {
            source: self.source.id.clone(),
            set: SetId::new("http://example.com/caps"),
            topic: TOPIC.to_owned(),
            hubs: vec![hub],
        };
        let key = self.keeper.push.keys().current().name();
        self.control.subscriptions().want(&offered, key, self.clock.now()).await.unwrap().id.clone()
    }

    fn keep(&self) {
        let clock = Arc::clone(&self.keeper.clock);
        tokio::spawn(periodic::make(self.keeper.clone(), clock, self.stop.clone()));
    }

    async fn requests(&self, count: usize) -> Vec<std::collections::BTreeMap<String, String>> {
        until_async(format!("{count} requests came"), async || self.hub.requests_at("/hub").len() >= count)
            .await;
        let read = |body: &[u8]| form_urlencoded::parse(body).into_owned().collect();
        self.hub.requests_at("/hub").iter().map(|request| read(&request.body)).collect()
    }

    async fn stands(&self, id: &SubscriptionId, what: &str, holds: impl Fn(&Subscription) -> bool) {
        until_async(what, async || self.control.subscriptions().get(id).await.is_ok_and(|now| holds(&now)))
            .await;
    }

    async fn verify(&self, id: &SubscriptionId, mode: AskedMode) {
        let step = SubscriptionStep::Verify { mode, topic: TOPIC.to_owned(), lease_seconds: Some(600) };
        self.control.subscriptions().step(id, &step, self.clock.now()).await.unwrap();
    }

    async fn gone(&self, id: &SubscriptionId) {
        until_async("it is gone", async || {
            matches!(self.control.subscriptions().get(id).await, Err(ControlError::Absent { .. }))
        })
        .await;
    }
}

async fn until_async(what: impl std::fmt::Display, mut is_so: impl AsyncFnMut() -> bool) {
    found(what, async || is_so().await.then_some(())).await;
}

impl Drop for Case {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_channel_is_subscribed_to_and_renewed_with_the_same_secret_and_callback() {
    let case = Case::new().await;
    case.hub.always("/hub", Reply::status(202));
    let id = case.want().await;
    case.keep();
    let first = case.requests(1).await.remove(0);
    assert_eq!((first["hub.mode"].as_str(), first["hub.topic"].as_str()), ("subscribe", TOPIC));
    let key = case.keeper.push.keys().current();
    assert_eq!(first["hub.callback"], case.keeper.push.callback(key, id.as_str()).as_str());
    assert_eq!(first["hub.secret"], key.secret(id.as_str()).expose());
    assert_eq!(first["hub.lease_seconds"], "864000");
    case.stands(&id, "it is pending", |now| now.state == SubscriptionState::Pending).await;
    case.verify(&id, AskedMode::Subscribe).await;
    assert_eq!(case.hub.requests().len(), 1, "nobody is asked before it is time");
    case.clock.advance(SignedDuration::from_secs(401));
    // Any update wakes the keeper, whose clock is not the machine's.
    let word = SubscriptionStep::Count(DeliveryStats { queued: 1, ..DeliveryStats::default() });
    case.control.subscriptions().step(&id, &word, case.clock.now()).await.unwrap();
    let second = case.requests(2).await.remove(1);
    assert_eq!(second, first);
    case.stands(&id, "it works on meanwhile", |now| now.is_active(case.clock.now())).await;
}

#[tokio::test]
async fn a_hub_that_is_away_is_asked_again_when_it_has_said() {
    let case = Case::new().await;
    case.hub.push("/hub", Reply::status(503).header("retry-after", "100"));
    let id = case.want().await;
    case.keep();
    let again = case.clock.now() + SignedDuration::from_secs(100);
    case.stands(&id, "it is put off by the hub's own word", |seen| {
        seen.trouble.is_some() && seen.next_at == again && seen.state == SubscriptionState::Wanted
    })
    .await;
    case.hub.assert_followed();
}

#[tokio::test]
async fn a_hub_that_refuses_is_asked_again_seldom() {
    let case = Case::new().await;
    case.hub.push("/hub", Reply::status(400));
    case.hub.always("/hub", Reply::status(202));
    let id = case.want().await;
    case.keep();
    let again = case.clock.now() + SignedDuration::from_hours(1);
    case.stands(&id, "a refusal puts it off for an hour", |seen| seen.next_at == again).await;
    case.clock.advance(SignedDuration::from_hours(1));
    // Any update wakes the keeper, whose clock is not the machine's.
    let word = SubscriptionStep::Count(DeliveryStats { dropped: 1, ..DeliveryStats::default() });
    case.control.subscriptions().step(&id, &word, case.clock.now()).await.unwrap();
    case.requests(2).await;
    case.stands(&id, "it is pending", |now| now.state == SubscriptionState::Pending).await;
}

#[tokio::test]
async fn what_nobody_wants_any_more_is_taken_back_from_the_hub() {
    let case = Case::new().await;
    case.hub.always("/hub", Reply::status(202));
    let id = case.want().await;
    case.keep();
    case.requests(1).await;
    case.verify(&id, AskedMode::Subscribe).await;
    let read = case.control.sources().get(&case.source.id).await.unwrap();
    let off = SourceSpec::from(Spec { push: Wish::Off, ..case.source.spec.clone() });
    case.control.sources().update(&off, read.revision).await.unwrap();
    let farewell = case.requests(2).await.remove(1);
    assert_eq!(farewell["hub.mode"], "unsubscribe");
    assert!(!farewell.contains_key("hub.secret"));
    case.verify(&id, AskedMode::Unsubscribe).await;
    case.gone(&id).await;
}

#[tokio::test]
async fn a_hub_over_plain_http_gets_no_secret_and_is_asked_only_where_the_operator_admits_it() {
    let case = Case::new().await;
    case.hub.always("/hub", Reply::status(202));
    // Its name is no address of this machine, although the machine answers for it.
    let id = case.want_at("http://hub.example/hub".to_owned()).await;
    let subscription = case.control.subscriptions().get(&id).await.unwrap();
    let mut sources = case.keeper.sources.clone();
    assert_eq!(case.keeper.task(&subscription, case.clock.now()), Some(Task::End));
    let read = case.control.sources().get(&case.source.id).await.unwrap();
    let admits = SourceSpec::from(Spec { push: Wish::Unsigned, ..case.source.spec.clone() });
    case.control.sources().update(&admits, read.revision).await.unwrap();
    let admitted = |sources: &WatchCache<SourceSpec>| {
        sources.get(&case.source.id).filter(|source| source.push == Wish::Unsigned).map(drop)
    };
    sources.wait_for(admitted).await;
    assert_eq!(case.keeper.task(&subscription, case.clock.now()), Some(Task::Ask));
}

#[tokio::test]
async fn a_subscription_ends_with_its_source() {
    let case = Case::new().await;
    case.hub.always("/hub", Reply::status(202));
    let id = case.want().await;
    case.keep();
    case.requests(1).await;
    let read = case.control.sources().get(&case.source.id).await.unwrap();
    case.control.sources().delete(&case.source.id, read.revision).await.unwrap();
    assert_eq!(case.requests(2).await[1]["hub.mode"], "unsubscribe");
    case.verify(&id, AskedMode::Unsubscribe).await;
    case.gone(&id).await;
}

#[tokio::test]
async fn a_new_push_key_replaces_subscriptions_without_a_moment_in_which_none_works() {
    let mut case = Case::new().await;
    case.hub.always("/hub", Reply::status(202));
    let old = case.want().await;
    case.keep();
    case.requests(1).await;
    case.verify(&old, AskedMode::Subscribe).await;
    case.stop.cancel();
    case.stop = CancellationToken::new();
    case.keeper.push = push("B", &["A"]);
    case.keep();
    let asked = case.requests(2).await.remove(1);
    let (key, source): (_, &SourceId) = (case.keeper.push.keys().current(), &case.source.id);
    let new = SubscriptionId::of(source, TOPIC, key.name());
    assert_eq!(asked["hub.secret"], key.secret(new.as_str()).expose());
    case.stands(&old, "the old one works on", |seen| seen.is_active(case.clock.now())).await;
    case.verify(&new, AskedMode::Subscribe).await;
    assert_eq!(case.requests(3).await[2]["hub.mode"], "unsubscribe");
    case.stands(&old, "it is about to end", |seen| seen.state == SubscriptionState::Ending).await;
    case.stands(&new, "the new one works", |seen| seen.is_active(case.clock.now())).await;
}
