//! A sender on a real control store, and a page with a scripted inbox.

use control::{Change, Config, Spec};
use jiff::SignedDuration;
use model::{ManualClock, RunId};
use serde_json::Value;
use testkit::scripted::{Recorded, Reply, ScriptedServer};
use testkit::servers::NatsFixture;
use testkit::waiting::found;
use tokio_util::sync::CancellationToken;
use web::{AddressPolicy, WebConfig};

use super::*;
use crate::notifier::periodic;

struct Case {
    control: Control,
    page: ScriptedServer,
    target: Url,
    clock: Arc<ManualClock>,
    source: SourceSpec,
    sender: OutboxSender,
    stop: CancellationToken,
}

impl Case {
    async fn new() -> Self {
        Self::reaching(AddressPolicy::allow_all()).await
    }

    async fn reaching(addresses: AddressPolicy) -> Self {
        let config = Config {
            servers: vec![NatsFixture::get().await.url],
            namespace: format!("t-{}", RunId::fresh()),
            ..Config::default()
        };
        let control = Control::connect(&config).await.unwrap();
        let page = ScriptedServer::start().await.unwrap();
        let target: Url = page.uri("/me").parse().unwrap();
        let notify = vec![target.clone()];
        let source = SourceSpec::from(Spec { notify, ..Spec::new("http://example.com/".parse().unwrap()) });
        control.sources().create(&source).await.unwrap();
        let clock = Arc::new(ManualClock::new("2026-03-01T12:00:00Z".parse().unwrap()));
        let sender = OutboxSender {
            me: MemberId::fresh("me"),
            sources: control.sources().view().await.unwrap(),
            outbox: control.outbox().view().await.unwrap(),
            members: control.members().view().await.unwrap(),
            client: Client::new(WebConfig { addresses, ..WebConfig::default() }).unwrap(),
            identity: Some("https://harvester.example.org/".parse().unwrap()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            metrics: SchedulerMetrics::default(),
            control: control.clone(),
        };
        Self { control, page, target, clock, source, sender, stop: CancellationToken::new() }
    }

    /// Records that a run changed resources.
    async fn changed(&self, stored: u64) {
        let now = self.clock.now();
        let change = Change { run: RunId::fresh(), from: now, until: now, stored, deleted: 1 };
        self.control.outbox().tell(&self.source.id, &self.target, &change, now).await.unwrap();
    }

    fn start(&self) {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        tokio::spawn(periodic::make(self.sender.clone(), clock, self.stop.clone()));
    }

    /// The page names its inbox in a header.
    fn is_linked(&self) {
        let link = "</inbox/>; rel=\"http://www.w3.org/ns/ldp#inbox\"";
        self.page.always("/me", Reply::status(200).header("link", link));
    }

    async fn posted(&self, count: usize) -> Vec<Recorded> {
        let posted = || Some(self.page.requests_at("/inbox/")).filter(|posted| posted.len() >= count);
        found(format!("{count} notifications came"), async || posted()).await
    }

    /// The outbox, once it is as expected.
    async fn stands(
        &self,
        what: &str,
        holds: impl Fn(&[Versioned<OutboxMessage>]) -> bool,
    ) -> Vec<Versioned<OutboxMessage>> {
        let view = self.control.outbox().view().await.unwrap();
        found(what, async || Some(view.all()).filter(|all| holds(all))).await
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn json(request: &Recorded) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test]
async fn a_change_is_told_to_the_inbox_that_the_page_links_to_and_no_more_of_it_is_kept() {
    let case = Case::new().await;
    case.is_linked();
    case.page.push("/inbox/", Reply::status(201));
    case.changed(12).await;
    case.start();
    let posted = case.posted(1).await.remove(0);
    assert_eq!(
        (posted.method.as_str(), posted.header("content-type")),
        ("POST", Some("application/ld+json"))
    );
    let said = json(&posted);
    assert_eq!(
        (&said["type"], &said["object"]["object"]),
        (&"Announce".into(), &"http://example.com/".into())
    );
    assert_eq!(
        (&said["actor"]["id"], &said["summary"]),
        (&"https://harvester.example.org/".into(), &"12 stored, 1 deleted".into())
    );
    case.stands("the outbox is empty", <[_]>::is_empty).await;
    let asked: Vec<_> =
        case.page.requests_at("/me").iter().map(|request| request.method.to_string()).collect();
    assert_eq!(asked, ["HEAD"]);
    case.page.assert_followed();
}

#[tokio::test]
async fn a_page_that_knows_no_head_is_asked_for_its_json_ld() {
    let case = Case::new().await;
    let body = r#"{"@context": "http://www.w3.org/ns/ldp", "@id": "", "inbox": "/inbox/"}"#;
    case.page.push("/me", Reply::status(405));
    case.page.push("/me", Reply::ok(body).header("content-type", "application/ld+json; charset=utf-8"));
    case.page.push("/inbox/", Reply::status(202));
    case.changed(1).await;
    case.start();
    case.posted(1).await;
    case.stands("the outbox is empty", <[_]>::is_empty).await;
    case.page.assert_followed();
}

#[tokio::test]
async fn an_inbox_that_is_away_is_tried_again_under_the_same_name_and_with_what_came_meanwhile() {
    let case = Case::new().await;
    case.is_linked();
    case.page.push("/inbox/", Reply::status(500));
    case.page.always("/inbox/", Reply::status(201));
    case.changed(1).await;
    case.start();
    let first = case.posted(1).await.remove(0);
    let again = case.clock.now() + SignedDuration::from_secs(5);
    let put_off = case
        .stands("it is put off", |all| all.iter().any(|one| one.next_at == again && one.trouble.is_some()))
        .await;
    assert_eq!(put_off[0].name(), json(&first)["id"].as_str().unwrap());
    case.clock.advance(SignedDuration::from_secs(5));
    // A new message wakes the sender, whose clock is not the machine's.
    case.changed(3).await;
    let second = json(&case.posted(2).await[1]);
    assert_eq!(second["summary"], "4 stored, 2 deleted");
    case.stands("the outbox is empty", <[_]>::is_empty).await;
}

#[tokio::test]
async fn who_says_no_is_not_asked_again_before_there_is_more_and_that_stays_to_be_seen() {
    let case = Case::new().await;
    case.is_linked();
    case.page.push("/inbox/", Reply::status(403));
    case.page.push("/inbox/", Reply::status(201));
    case.changed(1).await;
    case.start();
    let refused = |all: &[Versioned<OutboxMessage>]| all.iter().any(|one| one.state == OutboxState::Refused);
    let seen = case.stands("it is refused", refused).await;
    assert!(seen[0].trouble.as_ref().is_some_and(|why| why.contains("403")), "{seen:?}");
    case.changed(2).await;
    assert_eq!(json(&case.posted(2).await[1])["summary"], "3 stored, 2 deleted");
    case.stands("the outbox is empty", <[_]>::is_empty).await;
    case.page.assert_followed();
}

#[tokio::test]
async fn a_page_without_an_inbox_is_no_target_and_a_loopback_address_is_none_unless_it_is_allowed() {
    for (addresses, said) in
        [(AddressPolicy::allow_all(), "names no inbox"), (AddressPolicy::public_only(), "127.0.0.1")]
    {
        let case = Case::reaching(addresses.clone()).await;
        case.page.always("/me", Reply::ok("<html></html>").header("content-type", "text/html"));
        case.changed(1).await;
        case.start();
        let refused =
            |all: &[Versioned<OutboxMessage>]| all.iter().any(|one| one.state == OutboxState::Refused);
        let seen = case.stands("it is refused", refused).await;
        assert!(seen[0].trouble.as_ref().is_some_and(|why| why.contains(said)), "{seen:?}");
        let may_ask = addresses == AddressPolicy::allow_all();
        assert_eq!(case.page.requests().len(), if may_ask { 2 } else { 0 });
    }
}

#[tokio::test]
async fn what_somebody_had_in_hand_who_is_gone_is_sent_after_its_pause() {
    let case = Case::new().await;
    case.is_linked();
    case.page.push("/inbox/", Reply::status(201));
    case.changed(5).await;
    let waiting = case.stands("it waits", |all| !all.is_empty()).await;
    case.control.outbox().take(&waiting[0], case.clock.now()).await.unwrap().expect("nobody has it");
    case.clock.advance(SignedDuration::from_secs(5));
    case.start();
    assert_eq!(json(&case.posted(1).await[0])["id"], waiting[0].name());
    case.stands("the outbox is empty", <[_]>::is_empty).await;
    case.page.assert_followed();
}

#[tokio::test]
async fn who_is_not_to_be_told_any_more_is_not() {
    let case = Case::new().await;
    case.changed(1).await;
    let read = case.control.sources().get(&case.source.id).await.unwrap();
    let told = SourceSpec::from(Spec { notify: Vec::new(), ..case.source.spec.clone() });
    case.control.sources().update(&told, read.revision).await.unwrap();
    let mut sources = case.sender.sources.clone();
    sources.wait_for(|all| all.get(&case.source.id).filter(|one| one.notify.is_empty())).await;
    case.start();
    case.stands("the outbox is empty", <[_]>::is_empty).await;
    assert_eq!(case.page.requests().len(), 0);
}

#[tokio::test]
async fn a_part_of_a_page_has_the_inbox_that_the_body_tells_of_whatever_the_header_links_to() {
    let case = Case::new().await;
    let body = serde_json::json!({"@id": "#me", ldn::terms::INBOX: {"@id": "/inbox/of-me"}}).to_string();
    let link = "</inbox/of-the-page>; rel=\"http://www.w3.org/ns/ldp#inbox\"";
    let page = Reply::status(200).header("link", link).header("content-type", ldn::JSON_LD).body(body);
    case.page.always("/doc", page);
    let target: Url = case.page.uri("/doc#me").parse().unwrap();
    let found = inbox::find(&case.sender.client, &target).await.unwrap();
    assert_eq!(found.as_str(), case.page.uri("/inbox/of-me"));
    let methods: Vec<_> =
        case.page.requests_at("/doc").iter().map(|request| request.method.to_string()).collect();
    assert_eq!(methods, ["GET"]);
    let whole = inbox::find(&case.sender.client, &case.page.uri("/doc").parse().unwrap()).await.unwrap();
    assert_eq!(whole.as_str(), case.page.uri("/inbox/of-the-page"));
}
