//! Push: a fleet that gets changes from a hub, and is in sync a moment later.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::common::api::Api;
use crate::common::{Fleet, Service, source, truth};
use jiff::Timestamp;
use model::SourceId;
use serde_json::json;
use simulated_source::{Change, Changes, SimTime, SimulatedSource, SourceSpec};
use testkit::hub::{SimulatedHub, sign};
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::{found, until};

/// Notifications that are sent while one is missing.
const MOST_TOLD: usize = 60;

/// A fleet in one process, a Source in sync with it, and the Source's hub.
struct Case {
    fleet: Fleet,
    all: Service,
    api: Api,
    hub: SimulatedHub,
    source: SimulatedSource,
    /// The time up to which the hub has delivered changes.
    told: SimTime,
}

impl Case {
    async fn new(spec: SourceSpec) -> Self {
        Self::with(spec, "").await
    }

    /// The same, with more lines of configuration.
    async fn with(spec: SourceSpec, more: &str) -> Self {
        let hub = SimulatedHub::start().unwrap();
        let source = source(spec.hub(hub.url())).await;
        let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
        let key = fleet.path("push-key");
        fs::write(&key, "a key that nobody guesses, of more than 32 bytes\n").unwrap();
        let push =
            format!("push: {{public_url: 'http://push.example/', key: {{file: '{}'}}}}", key.display());
        let all = fleet.start(&[], &format!("{}\n{push}\n{more}", fleet.gateway()));
        let api = Api::of(&all).await;
        hub.find_callbacks_at(api.base.clone());
        fleet.add(&source.well_known(), &[]);
        fleet.harvest(&source.well_known()).await.exits(0);
        until("the hub has verified the subscription", || hub.subscribers().len() == 1).await;
        let told = source.now();
        Self { fleet, all, api, hub, source, told }
    }

    /// Delivers the latest changes through the hub.
    fn telling(&mut self, changes: &[Change]) -> String {
        let from = self.told;
        let until = self.source.now();
        self.told = until;
        self.source.notification(from, until, changes)
    }

    async fn in_step(&self) {
        let fleet = &self.fleet;
        let source = &self.source;
        until("what is held is what the Source has", || fleet.destination().present() == truth(source)).await;
    }
}

fn changes() -> Changes {
    Changes { create: 2, update: 3, delete: 1 }
}

#[tokio::test]
async fn a_change_that_a_hub_tells_of_is_held_without_a_look_at_a_list() {
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    // The Source may change between the run and the subscription, so the hub's first notification starts a run.
    let made = case.source.change(changes());
    let first = case.telling(&made);
    assert_eq!(case.hub.deliver(&first).await, [202]);
    case.in_step().await;
    case.fleet.watch(&case.source.well_known()).await.exits(0);
    case.source.reset_requests();
    let made = case.source.change(changes());
    let second = case.telling(&made);
    assert_eq!(case.hub.deliver(&second).await, [202]);
    assert_eq!(case.hub.deliver(&second).await, [202], "twice the same does no harm");
    case.in_step().await;
    case.fleet.watch(&case.source.well_known()).await.exits(0);
    let asked = case.source.requests().per_path;
    assert!(asked.keys().all(|path| !path.ends_with(".xml")), "nobody has asked for a list: {asked:?}");
    assert_eq!(case.source.requests().resources, 5);
}

#[tokio::test]
async fn lnk_1_links_of_a_change_notification_are_kept() {
    const COLLECTION: &str = "http://c.test/1";
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    let made = case.source.change(changes());
    let first = case.telling(&made);
    assert_eq!(case.hub.deliver(&first).await, [202]);
    case.in_step().await;
    case.fleet.watch(&case.source.well_known()).await.exits(0);
    let made = case.source.change(Changes { create: 2, update: 0, delete: 0 });
    let link = format!("<rs:ln rel=\"collection\" href=\"{COLLECTION}\"/></url>");
    let second = case.telling(&made).replace("</url>", &link);
    assert!(second.contains(COLLECTION), "{second}");
    assert_eq!(case.hub.deliver(&second).await, [202]);
    case.in_step().await;
    let lines = case.fleet.destination().listed();
    let linked = lines.iter().filter(|line| line["links"][0]["href"] == COLLECTION);
    assert_eq!(linked.count(), 2, "{lines:?}");
}

#[tokio::test]
async fn what_is_told_while_a_run_is_under_way_is_taken_up_by_that_run() {
    const TOLD: usize = 10;
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    // The run that the first one starts is under way until all are told.
    case.source.allow(0);
    for _ in 0..TOLD {
        let made = case.source.change(Changes { create: 2, ..Changes::default() });
        let told = case.telling(&made);
        assert_eq!(case.hub.deliver(&told).await, [202]);
    }
    case.source.allow_all();
    case.in_step().await;
    let runs = case.api.get("/v1/runs").await.json();
    let id = runs["items"][0]["source"].as_str().expect("a run has a Source").to_owned();
    let runs = case.api.get(&format!("/v1/sources/{id}/runs")).await.json();
    let told =
        runs["items"].as_array().expect("a list").iter().filter(|run| run["requested_by"] == "notification");
    assert!(told.count() < TOLD, "each notification had a run of its own: {runs}");
}

#[tokio::test]
async fn what_does_not_join_on_is_held_though_no_list_tells_of_it() {
    let create = Changes { create: 1, ..Changes::default() };
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    let made = case.source.change(create);
    let told = case.telling(&made);
    assert_eq!(case.hub.deliver(&told).await, [202]);
    case.in_step().await;
    // The run that has taken it up waits for more. The notification of the time between never comes, and lists do not
    // go back so far.
    case.source.advance(5);
    case.told = case.source.now();
    let made = case.source.change(create);
    let told = case.telling(&made);
    case.source.forget_changes();
    assert_eq!(case.hub.deliver(&told).await, [202]);
    case.in_step().await;
}

#[tokio::test]
async fn what_was_not_delivered_is_found_in_the_change_list() {
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    let made = case.source.change(changes());
    let _lost = case.telling(&made);
    let made = case.source.change(changes());
    let told = case.telling(&made);
    assert_eq!(case.hub.deliver(&told).await, [202]);
    case.in_step().await;
}

#[tokio::test]
async fn what_was_not_delivered_is_found_also_while_more_is_delivered_all_the_time() {
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    let made = case.source.change(Changes { create: 1, ..Changes::default() });
    let uri = case.source.resource_uri(made[0].index);
    let _lost = case.telling(&made);
    // The Source's clock has whole seconds: an interval that begins with the next one is contiguous.
    case.source.advance(2);
    case.told = case.source.now();
    let is_held = |fleet: &Fleet| fleet.destination().present().contains_key(&uri);
    for _ in 0..MOST_TOLD {
        let made = case.source.change(Changes { update: 1, ..Changes::default() });
        let told = case.telling(&made);
        assert_eq!(case.hub.deliver(&told).await, [202]);
        if is_held(&case.fleet) {
            return;
        }
    }
    panic!("it is not held after {MOST_TOLD} notifications");
}

#[tokio::test]
async fn notifications_that_come_in_the_wrong_order_are_put_in_order() {
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    let tellings: Vec<String> = (0..4)
        .map(|_| {
            let made = case.source.change(changes());
            case.telling(&made)
        })
        .collect();
    for telling in tellings.iter().rev() {
        assert_eq!(case.hub.deliver(telling).await, [202]);
    }
    case.in_step().await;
    case.fleet.watch(&case.source.well_known()).await.exits(0);
    assert_eq!(case.fleet.destination().present(), truth(&case.source));
}

#[tokio::test]
async fn what_is_forged_plans_nothing() {
    let mut case = Case::new(SourceSpec::default().resources(10)).await;
    let held = case.fleet.destination().present();
    let made = case.source.change(Changes { delete: 5, ..Changes::default() });
    let told = case.telling(&made);
    let to = case.hub.subscribers().remove(0);
    assert_eq!(case.hub.deliver_signed(&to, &told, &sign("a guess", told.as_bytes())).await, 202);
    // A later honest notification is processed after it.
    let runs = case.api.get("/v1/runs").await.json()["items"].as_array().map_or(0, Vec::len);
    assert_eq!((case.fleet.destination().present(), runs), (held, 1));
    assert_eq!(case.hub.deliver(&told).await, [202]);
    case.in_step().await;
}

#[tokio::test]
async fn what_was_answered_with_a_yes_outlives_the_whole_fleet() {
    let mut case = Case::new(SourceSpec::default().resources(30)).await;
    let made = case.source.change(changes());
    let told = case.telling(&made);
    assert_eq!(case.hub.deliver(&told).await, [202]);
    drop(case.all);
    let key = case.fleet.path("push-key");
    let push = format!("push: {{public_url: 'http://push.example/', key: {{file: '{}'}}}}", key.display());
    case.all = case.fleet.start(&[], &format!("{}\n{push}", case.fleet.gateway()));
    let fleet = &case.fleet;
    let source = &case.source;
    until("what is held is what the Source has", || fleet.destination().present() == truth(source)).await;
}

#[tokio::test]
async fn a_source_that_goes_takes_its_subscription_with_it() {
    let case = Case::new(SourceSpec::default().resources(5)).await;
    crate::common::Run::of(case.fleet.command("source").args(["rm", &case.source.well_known()])).exits(0);
    until("the hub has heard of it", || case.hub.subscribers().is_empty()).await;
    assert_eq!(case.hub.refused(), 0);
}

/// Sets the clock of a Source to ours. Missed changes are those since the hub verified the subscription, by that clock.
fn to_the_present(source: &SimulatedSource) {
    let behind = Timestamp::now().duration_since(source.now().timestamp()).as_secs();
    source
        .advance(u32::try_from(behind).expect("simulations begin in the past, and less than a century ago"));
}

impl Case {
    /// The value of a series without labels.
    fn counted(&self, name: &str) -> f64 {
        let mut page = String::new();
        let mut stream = TcpStream::connect(self.all.admin()).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        stream.read_to_string(&mut page).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is shown")).parse().unwrap()
    }
}

#[tokio::test]
async fn a_hub_that_has_gone_silent_is_noticed_by_a_backup_poll_and_asked_anew() {
    let more = "scheduler: {fallback_poll_seconds: 1, notification_timeout_seconds: 0}";
    let case = Case::with(SourceSpec::default().resources(30), more).await;
    to_the_present(&case.source);
    assert_eq!(case.hub.subscribers()[0].verified, 1);
    case.source.change(changes());
    case.in_step().await;
    until("the hub has verified the subscription again", || case.hub.subscribers()[0].verified >= 2).await;
    assert_eq!(case.counted("thresher_scheduler_missed_changes_total"), 6.0);
    assert_eq!(case.counted("thresher_scheduler_resubscriptions_total"), 1.0);
    let url = case.source.well_known();
    let id = SourceId::of_entry(&url.parse().unwrap());
    let shown = found("the API shows what was missed", async || {
        let page = case.api.get(&format!("/v1/sources/{id}/subscriptions")).await.json();
        (page["items"][0]["missed"] == 6).then_some(page)
    })
    .await;
    let one = &shown["items"][0];
    assert_eq!((&one["state"], &one["missed"], &one["accepted"]), (&json!("active"), &json!(6), &json!(0)));
    assert_eq!(one["hub"], case.hub.url());
    let secrets = [case.hub.subscribers()[0].secret.clone(), "/push/".to_owned()];
    assert!(secrets.iter().all(|secret| !shown.to_string().contains(secret)), "{shown}");
    let told = case.api.ask(&["source", "show", &url]).await.exits(0).stdout;
    assert!(told.contains("#   state: active") && told.contains("changes missed: 6"), "{told}");
    assert_eq!(case.counted("thresher_scheduler_push_lag_seconds_count"), 0.0, "no hub told of them");
}

#[tokio::test]
async fn what_a_hub_has_told_is_not_missed_and_its_lag_is_measured() {
    let more = "scheduler: {notification_timeout_seconds: 0}";
    let mut case = Case::with(SourceSpec::default().resources(30), more).await;
    let url = case.source.well_known();
    to_the_present(&case.source);
    let few = Changes { create: 1, update: 1, delete: 1 };
    let made = case.source.change(few);
    let told = case.telling(&made);
    assert_eq!(case.hub.deliver(&told).await, [202]);
    case.in_step().await;
    case.fleet.watch(&url).await.exits(0);
    assert_eq!(case.counted("thresher_scheduler_push_lag_seconds_count"), 3.0);
    // A poll rereads all of them.
    case.fleet.harvest(&url).await.exits(0);
    // The hub does not deliver these. Each change is made a second after the one before, whatever our clock says. Only
    // past changes count.
    let last = case.source.change(few).last().expect("there are some").time.timestamp();
    until("the changes lie in the past", || Timestamp::now() > last).await;
    case.fleet.harvest(&url).await.exits(0);
    assert_eq!(case.counted("thresher_scheduler_missed_changes_total"), 3.0, "the others were told");
    assert_eq!(case.counted("thresher_scheduler_push_lag_seconds_count"), 3.0);
}
