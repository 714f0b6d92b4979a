//! A reader on a real control store, and a scripted inbox.

use control::{Config, Spec};
use jiff::SignedDuration;
use model::{ManualClock, RunId};
use serde_json::json;
use testkit::scripted::{Reply, ScriptedServer};
use testkit::servers::NatsFixture;
use testkit::waiting::found;
use tokio_util::sync::CancellationToken;
use web::WebConfig;

use super::*;
use crate::notifier::periodic;

const EVERY: Duration = Duration::from_secs(300);

struct Case {
    control: Control,
    server: ScriptedServer,
    clock: Arc<ManualClock>,
    source: SourceSpec,
    reader: InboxPoller,
    stop: CancellationToken,
}

impl Case {
    /// A Source with the inbox `path`.
    async fn new(path: &str) -> Self {
        let config = Config {
            servers: vec![NatsFixture::get().await.url],
            namespace: format!("t-{}", RunId::fresh()),
            ..Config::default()
        };
        let control = Control::connect(&config).await.unwrap();
        let server = ScriptedServer::start().await.unwrap();
        let inbox = Some(server.uri(path).parse().unwrap());
        let source = SourceSpec::from(Spec { inbox, ..Spec::new("http://example.com/".parse().unwrap()) });
        control.sources().create(&source).await.unwrap();
        let clock = Arc::new(ManualClock::new("2026-03-01T12:00:00Z".parse().unwrap()));
        let reader = InboxPoller {
            me: MemberId::fresh("me"),
            sources: control.sources().view().await.unwrap(),
            readings: control.inbox_cursors().view().await.unwrap(),
            members: control.members().view().await.unwrap(),
            client: Client::new(WebConfig::default()).unwrap(),
            every: EVERY,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            metrics: SchedulerMetrics::default(),
            control: control.clone(),
        };
        Self { control, server, clock, source, reader, stop: CancellationToken::new() }
    }

    /// One poll, when due.
    async fn look(&self) -> InboxCursor {
        let page = self.source.inbox.clone().expect("it has one");
        self.reader.look_at(&self.source, page).await.unwrap();
        (*self.control.inbox_cursors().get(&self.source.id).await.unwrap().0.expect("it is noted").value)
            .clone()
    }

    /// The next poll, at its time.
    async fn look_again(&self) -> InboxCursor {
        self.clock.advance(SignedDuration::from_secs(300));
        self.look().await
    }

    /// Consumes the hint, if there is one.
    async fn hinted(&self) -> Option<String> {
        let hint = self.control.hints().get(&self.source.id).await.unwrap()?;
        self.control.hints().take_up(&hint).await.unwrap();
        Some(hint.by.clone())
    }

    fn lists(&self, path: &str, notifications: &[&str]) -> Reply {
        let body = json!({"@context": "http://www.w3.org/ns/ldp", "@id": self.server.uri(path), "contains": notifications});
        json_ld(&body)
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn json_ld(body: &Value) -> Reply {
    Reply::ok(body.to_string()).header("content-type", "application/ld+json")
}

fn update(object: &str) -> Reply {
    json_ld(&json!({"@context": "https://www.w3.org/ns/activitystreams", "type": "Update", "object": object}))
}

#[tokio::test]
async fn what_is_new_and_about_the_source_is_a_hint_and_nothing_is_read_twice() {
    let case = Case::new("/inbox/").await;
    case.server.push("/inbox/", case.lists("/inbox/", &["1"]).header("etag", "\"a\""));
    case.server.push("/inbox/1", update("http://elsewhere.example/x"));
    let first = case.look().await;
    assert_eq!((case.hinted().await, first.seen.len(), first.trouble), (None, 1, None));
    case.server.push("/inbox/", case.lists("/inbox/", &["1", "2"]).header("etag", "\"b\""));
    case.server.push("/inbox/2", update("http://example.com/a.pdf"));
    let second = case.look_again().await;
    assert_eq!(case.hinted().await, Some(format!("inbox {}", case.server.uri("/inbox/"))));
    assert_eq!(second.seen.len(), 2);
    case.server.push("/inbox/", Reply::status(304));
    let third = case.look_again().await;
    assert_eq!((case.hinted().await, third.seen, third.tries), (None, second.seen, 0));
    let conditions: Vec<_> = case
        .server
        .requests_at("/inbox/")
        .iter()
        .map(|request| request.header("if-none-match").map(str::to_owned))
        .collect();
    assert_eq!(conditions, [None, Some("\"a\"".to_owned()), Some("\"b\"".to_owned())]);
    case.server.assert_followed();
    // No poll before its time.
    case.look().await;
    case.server.assert_followed();
}

#[tokio::test]
async fn the_inbox_of_a_page_is_found_by_its_link_and_read_page_by_page() {
    let case = Case::new("/me").await;
    case.server.push("/me", Reply::ok("").header("link", "</inbox>; rel=\"http://www.w3.org/ns/ldp#inbox\""));
    case.server.push(
        "/inbox",
        case.lists("/inbox", &["/n/1"]).header("link", "</inbox?2>; rel=\"next\"").header("etag", "\"a\""),
    );
    case.server.push("/inbox?2", case.lists("/inbox", &["/n/2"]));
    case.server.push("/n/2", update("http://example.com/"));
    let read = case.look().await;
    assert!(case.hinted().await.is_some());
    // The first one was there before the hint, and is not requested.
    assert_eq!(
        (read.inbox.unwrap().path(), read.seen.len(), read.validators.is_empty()),
        ("/inbox", 2, true)
    );
    case.server.assert_followed();
}

#[tokio::test]
async fn nothing_is_asked_of_another_origin_whoever_leads_there() {
    let case = Case::new("/inbox").await;
    let other = ScriptedServer::start().await.unwrap();
    let elsewhere = other.uri("/n/1");
    let away = other.uri("/n/2");
    case.server.push(
        "/inbox",
        case.lists("/inbox", &[&elsewhere, "/n/2", "/n/3"])
            .header("link", format!("<{}>; rel=\"next\"", other.uri("/inbox"))),
    );
    case.server.always("/n/2", Reply::status(302).header("location", away));
    case.server.push("/n/3", update(&other.uri("/fetch-me")));
    let read = case.look().await;
    assert_eq!((case.hinted().await, read.trouble), (None, None));
    assert_eq!(other.requests().len(), 0);
    case.server.assert_followed();
}

#[tokio::test]
async fn what_cannot_be_read_is_left_and_what_cannot_be_had_now_is_tried_again() {
    let case = Case::new("/inbox").await;
    let huge = format!(
        r#"{{"type": "Update", "object": "http://example.com/", "summary": "{}"}}"#,
        "a".repeat(70_000)
    );
    case.server.always("/inbox", case.lists("/inbox", &["/html", "/huge", "/gone", "/down"]));
    case.server.push("/html", Reply::ok("<html></html>"));
    case.server.push("/huge", Reply::ok(huge));
    case.server.push("/gone", Reply::status(404));
    case.server.push("/down", Reply::status(500));
    let read = case.look().await;
    assert_eq!((case.hinted().await, read.seen.len()), (None, 3));
    case.server.push("/down", update("http://example.com/1"));
    let read = case.look_again().await;
    assert_eq!((case.hinted().await.is_some(), read.seen.len()), (true, 4));
    case.server.assert_followed();
}

#[tokio::test]
async fn an_inbox_that_is_away_is_told_of_and_looked_at_ever_more_seldom() {
    let case = Case::new("/inbox").await;
    case.server.push("/inbox", Reply::status(500));
    let failed = case.look().await;
    assert_eq!(failed.next_at, case.clock.now() + SignedDuration::from_secs(300));
    assert!(failed.trouble.is_some_and(|why| why.contains("500")));
    case.server.push("/inbox", Reply::status(404));
    let failed = case.look_again().await;
    assert_eq!((failed.next_at, failed.tries), (case.clock.now() + SignedDuration::from_secs(600), 2));
    case.clock.advance(SignedDuration::from_secs(600));
    case.server.push("/inbox", case.lists("/inbox", &[]));
    let read = case.look().await;
    assert_eq!((read.trouble, read.tries), (None, 0));
    case.server.assert_followed();
}

#[tokio::test]
async fn a_flood_is_read_in_portions() {
    let case = Case::new("/inbox").await;
    let paths: Vec<_> = (0..120).map(|n| format!("/n/{n}")).collect();
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    case.server.always("/inbox", case.lists("/inbox", &paths));
    for path in &paths {
        case.server.push(path, update("http://elsewhere.example/"));
    }
    let mut read = Vec::new();
    read.push(case.look().await.seen.len());
    for _ in 0..3 {
        read.push(case.look_again().await.seen.len());
    }
    assert_eq!(read, [50, 100, 120, 120]);
    case.server.assert_followed();
}

#[tokio::test]
async fn an_inbox_is_read_as_soon_as_it_is_named_and_forgotten_when_it_is_not() {
    let case = Case::new("/inbox").await;
    case.server.always("/inbox", case.lists("/inbox", &["/1"]));
    case.server.push("/1", update("http://example.com/1"));
    let clock = Arc::clone(&case.clock) as Arc<dyn Clock>;
    tokio::spawn(periodic::make(case.reader.clone(), clock, case.stop.clone()));
    found("a hint is given", async || case.hinted().await).await;
    let known = async || case.control.inbox_cursors().get(&case.source.id).await.unwrap().0;
    found("it is noted as read", async || known().await.filter(|known| known.seen.len() == 1)).await;
    let read = case.control.sources().get(&case.source.id).await.unwrap();
    let without = SourceSpec::from(Spec { inbox: None, ..case.source.spec.clone() });
    case.control.sources().update(&without, read.revision).await.unwrap();
    found("it is forgotten", async || known().await.is_none().then_some(())).await;
}
