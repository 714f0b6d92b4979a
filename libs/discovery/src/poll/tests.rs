use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use model::SystemClock;
use testkit::scripted::{Reply, ScriptedServer};
use tokio::time::Instant;
use web::{Carried, ErrorKind, Transport, WebConfig};

use super::*;

const LIST: &str = "<urlset/>";
const UNCHANGED: PollOutcome = PollOutcome::Unchanged { requests: 1 };
const NEWS: PollOutcome = PollOutcome::News { requests: 1 };

fn client() -> Client {
    Client::new(WebConfig::default()).unwrap()
}

fn document(uri: String, etag: Option<&str>, body: Option<&str>) -> PollDocument {
    let validators = Validators { etag: etag.map(str::to_owned), last_modified: None };
    PollDocument { uri, validators, digest: body.map(|body| Sha256::of(body.as_bytes())) }
}

fn basis(documents: Vec<PollDocument>) -> PollBasis {
    PollBasis { documents, valid_until: Timestamp::MAX }
}

/// The outcome for a document with both validators and a digest, by the server's answer.
async fn polled(reply: Reply) -> Result<PollOutcome, WebError> {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/list", reply);
    let basis = basis(vec![document(server.uri("/list"), Some("\"1\""), Some(LIST))]);
    poll(&client(), &basis).await
}

#[tokio::test]
async fn not_modified_and_the_same_body_are_unchanged() {
    assert_eq!(polled(Reply::status(304)).await.unwrap(), UNCHANGED);
    assert_eq!(polled(Reply::ok(LIST)).await.unwrap(), UNCHANGED);
    assert_eq!(polled(Reply::ok(LIST).without_length()).await.unwrap(), UNCHANGED);
}

#[tokio::test]
async fn anything_else_that_answers_is_news() {
    for reply in [
        Reply::ok("<urlset> </urlset>"),
        Reply::ok(""),
        Reply::status(204),
        Reply::status(206).body(LIST),
        Reply::status(404),
        Reply::status(410),
        Reply::status(500),
        Reply::status(503).header("retry-after", "60"),
        Reply::status(403).header("cf-mitigated", "challenge"),
        Reply::ok(LIST).cut_after(3),
    ] {
        assert_eq!(polled(reply.clone()).await.unwrap(), NEWS, "{reply:?}");
    }
}

#[tokio::test]
async fn a_page_in_place_of_a_document_is_news() {
    let login = "<!doctype html><form action=/login><input type=password name=p></form>";
    assert_eq!(polled(Reply::ok(login).header("content-type", "text/html")).await.unwrap(), NEWS);
}

#[tokio::test]
async fn a_body_longer_than_any_with_a_digest_is_not_received_whole() {
    let long = Bytes::from(vec![b' '; (BodyDigest::LONGEST + 1) as usize]);
    assert_eq!(polled(Reply::ok(long.clone())).await.unwrap(), NEWS);
    assert_eq!(polled(Reply::ok(long).without_length()).await.unwrap(), NEWS);
}

/// A body without end that is just fast enough for a run.
#[derive(Debug)]
struct Dripping;

impl Transport for Dripping {
    fn carry(&self, _: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>> {
        let pieces = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Some((Ok(Bytes::from_static(&[b' '; 32 << 10])), ()))
        });
        Box::pin(async { Ok(http::Response::new(pieces.boxed())) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_is_left_to_a_run() {
    let client = Client::over(WebConfig::default(), Arc::new(SystemClock), Arc::new(Dripping)).unwrap();
    let basis = basis(vec![document("http://h/list".to_owned(), None, Some(LIST))]);
    let begun = Instant::now();
    assert_eq!(poll(&client, &basis).await.unwrap(), NEWS);
    assert!(begun.elapsed() <= BODY_TIME + Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_redirect_is_news_even_to_the_same_body_and_another_origin_is_not_asked() {
    let server = ScriptedServer::start().await.unwrap();
    let other = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::status(301).header("location", "/b"));
    server.push("/b", Reply::status(304));
    server.push("/c", Reply::status(301).header("location", other.uri("/c")));
    let one = basis(vec![document(server.uri("/a"), Some("\"1\""), None)]);
    assert_eq!(poll(&client(), &one).await.unwrap(), PollOutcome::News { requests: 2 });
    let one = basis(vec![document(server.uri("/c"), Some("\"1\""), Some(LIST))]);
    assert_eq!(poll(&client(), &one).await.unwrap(), NEWS);
    assert!(other.requests().is_empty());
    server.assert_followed();
}

#[tokio::test]
async fn each_document_is_requested_once_with_its_validators_up_to_the_first_with_news() {
    let server = ScriptedServer::start().await.unwrap();
    for path in ["/1", "/2", "/3"] {
        server.always(path, Reply::status(304));
    }
    let all = |paths: &[&str]| {
        basis(paths.iter().map(|path| document(server.uri(path), Some("W/\"1\""), None)).collect())
    };
    let unchanged = poll(&client(), &all(&["/1", "/2", "/3"])).await.unwrap();
    assert_eq!(unchanged, PollOutcome::Unchanged { requests: 3 });
    for request in server.requests() {
        assert_eq!((request.method.as_str(), request.header("if-none-match")), ("GET", Some("W/\"1\"")));
    }
    server.push("/2", Reply::ok(LIST));
    assert_eq!(poll(&client(), &all(&["/1", "/2", "/3"])).await.unwrap(), PollOutcome::News { requests: 2 });
    assert_eq!(server.requests_at("/3").len(), 1);
}

#[tokio::test]
async fn a_document_without_validators_is_recognized_by_its_digest_alone() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/list", Reply::ok(LIST)).push("/list", Reply::status(304));
    let basis = basis(vec![document(server.uri("/list"), None, Some(LIST))]);
    assert_eq!(poll(&client(), &basis).await.unwrap(), UNCHANGED);
    assert_eq!(server.requests()[0].header("if-none-match"), None);
    // Nothing was asked that could be "not modified".
    assert_eq!(poll(&client(), &basis).await.unwrap(), NEWS);
}

#[tokio::test]
async fn a_source_that_does_not_answer_is_an_error_after_one_attempt() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/list", Reply::status(304).delay(Duration::from_secs(60)));
    let gone = basis(vec![document(server.uri("/list"), Some("\"1\""), None)]);
    let hasty = WebConfig { first_byte_timeout: Duration::from_millis(50), ..WebConfig::default() };
    let late = poll(&Client::new(hasty).unwrap(), &gone).await.unwrap_err();
    assert_eq!((late.requests(), matches!(late.kind(), ErrorKind::Timeout(_))), (1, true), "{late}");
    drop(server);
    let error = poll(&client(), &gone).await.unwrap_err();
    assert_eq!((error.requests(), matches!(error.kind(), ErrorKind::Connect(_))), (1, true), "{error}");
}

#[tokio::test]
async fn a_source_in_a_cooldown_is_left_alone() {
    let server = ScriptedServer::start().await.unwrap();
    let client = client();
    client.rest(&server.url().parse().unwrap(), Duration::from_secs(600));
    let basis = basis(vec![document(server.uri("/list"), Some("\"1\""), None)]);
    let error = poll(&client, &basis).await.unwrap_err();
    assert_eq!((error.kind(), error.requests()), (ErrorKind::CoolingDown, 0));
    let Disposition::Retry { after: Some(after) } = error.disposition() else { panic!("{error}") };
    assert!(after.as_secs() > 500, "{after:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_cannot_be_requested_is_left_to_a_run() {
    let basis = basis(vec![document("no-url".to_owned(), None, Some(LIST))]);
    assert_eq!(poll(&client(), &basis).await.unwrap(), PollOutcome::News { requests: 0 });
}
