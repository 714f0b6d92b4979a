//! Responses of servers, and their results.

use std::time::Duration;

use bytes::Bytes;
use jiff::SignedDuration;
use model::{Disposition, Origin, ProblemReason, Validators};
use testkit::scripted::{Reply, ScriptedServer};
use web::{ErrorKind, GetRequest, Range, Response, WebConfig};

use crate::support::{client, config, request};

async fn whole(mut response: Response) -> Bytes {
    let mut pieces = Vec::new();
    while let Some(piece) = response.chunk().await.unwrap() {
        pieces.push(piece);
    }
    pieces.concat().into()
}

#[tokio::test]
async fn a_body_and_its_description_arrive() {
    let server = ScriptedServer::start().await.unwrap();
    let reply = Reply::ok("abc")
        .header("content-type", "Text/XML; charset=utf-8")
        .header("etag", "\"v1\"")
        .header("last-modified", "Tue, 01 Jan 2013 00:00:00 GMT")
        .header("link", "<a>; rel=up")
        .header("link", "<b>; rel=resourcesync");
    server.push("/a?b", reply);
    let client = client();
    let response = client.get(request(&server.uri("/a?b#c"))).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.content_length(), Some(3));
    assert_eq!(response.media_type().as_deref(), Some("text/xml"));
    assert_eq!(response.content_encoding(), None);
    let validators = response.validators();
    assert_eq!(validators.etag.as_deref(), Some("\"v1\""));
    assert_eq!(validators.last_modified.as_deref(), Some("Tue, 01 Jan 2013 00:00:00 GMT"));
    assert_eq!(response.header_values("link").count(), 2);
    assert_eq!((response.requests(), client.requests(), response.redirects().len()), (1, 1, 0));
    assert_eq!(whole(response).await, "abc");

    let [seen] = &server.requests()[..] else { panic!("one request was expected") };
    assert_eq!(seen.header("user-agent"), Some(WebConfig::default().user_agent_header().as_str()));
    assert_eq!(seen.header("accept"), Some("*/*"));
    assert_eq!(seen.header("host"), Some(server.url().trim_start_matches("http://")));
    for absent in [
        "accept-encoding",
        "authorization",
        "content-length",
        "if-none-match",
        "if-modified-since",
        "range",
        "cookie",
        "referer",
    ] {
        assert_eq!(seen.header(absent), None, "{absent}");
    }
    server.assert_followed();
}

#[tokio::test]
async fn headers_that_are_kept_with_each_resource_have_a_bound() {
    let server = ScriptedServer::start().await.unwrap();
    let long = |bytes: usize| "x".repeat(bytes);
    let reply = |etag, media_type, coding| {
        let reply = Reply::ok("abc").header("etag", long(etag)).header("content-encoding", long(coding));
        reply.header("content-type", format!("text/{}", long(media_type - "text/".len())))
    };
    server.push("/long", reply(1025, 256, 256)).push("/as-allowed", reply(1024, 255, 255));
    let kept = async |path| {
        let response = client().get(request(&server.uri(path))).await.unwrap();
        (response.validators().etag, response.media_type(), response.content_encoding())
    };
    assert_eq!(kept("/long").await, (None, None, Some(long(255))), "the body is still told to be encoded");
    let allowed = (Some(long(1024)), Some(format!("text/{}", long(250))), Some(long(255)));
    assert_eq!(kept("/as-allowed").await, allowed);
}

#[tokio::test]
async fn the_media_type_that_is_wanted_is_asked_for_and_no_other() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::ok("abc"));
    let asked = GetRequest { accept: Some("text/html".into()), ..request(&server.uri("/a")) };
    client().get(asked).await.unwrap();
    let sent: Vec<_> = server.requests()[0].headers.get_all("accept").iter().cloned().collect();
    assert_eq!(sent, ["text/html"]);
}

#[tokio::test]
async fn encoded_bytes_are_given_as_they_are_sent() {
    let server = ScriptedServer::start().await.unwrap();
    // The start of a gzip member: a client that decodes it cannot return these bytes.
    let bytes = Bytes::from_static(b"\x1f\x8b\x08\x00not really gzip");
    server.push("/a", Reply::ok(bytes.clone()).header("content-encoding", "GZIP"));
    let response = client().get(request(&server.uri("/a"))).await.unwrap();
    assert_eq!(response.content_encoding().as_deref(), Some("gzip"));
    assert_eq!(response.content_length(), Some(bytes.len() as u64));
    assert_eq!(whole(response).await, bytes);
}

#[tokio::test]
async fn held_versions_are_asked_for_and_304_is_an_answer() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::status(304).header("etag", "\"v1\"").header("content-length", "99"));
    let validators = Validators { etag: Some("\"v1\"".into()), last_modified: Some("yesterday".into()) };
    let request = GetRequest { validators, ..request(&server.uri("/a")) };
    let mut response = client().get(request).await.unwrap();
    assert_eq!(response.status(), 304);
    assert_eq!(response.chunk().await.unwrap(), None);
    let seen = &server.requests()[0];
    assert_eq!(seen.header("if-none-match"), Some("\"v1\""));
    assert_eq!(seen.header("if-modified-since"), Some("yesterday"));
}

#[tokio::test]
async fn the_rest_of_a_body_is_an_answer_only_where_it_was_asked_for() {
    let server = ScriptedServer::start().await.unwrap();
    let part = Reply::status(206).body("cd").header("content-range", "bytes 2-3/4");
    server.always("/a", part);
    let from =
        |from| GetRequest { range: Some(Range::rest(from, "\"v1\"".into())), ..request(&server.uri("/a")) };
    let response = client().get(from(2)).await.unwrap();
    assert_eq!(response.status(), 206);
    assert_eq!(whole(response).await, "cd");
    assert_eq!(server.requests()[0].header("range"), Some("bytes=2-"));
    assert_eq!(server.requests()[0].header("if-range"), Some("\"v1\""));
    for unasked in [from(1), request(&server.uri("/a"))] {
        let error = client().get(unasked).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unasked(206));
        assert_eq!(error.reason(), ProblemReason::HttpUnexpected);
    }
}

#[tokio::test]
async fn not_modified_without_a_condition_is_no_answer() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::status(304));
    let error = client().get(request(&server.uri("/a"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unasked(304));
}

#[tokio::test]
async fn other_statuses_are_errors_that_carry_them() {
    let server = ScriptedServer::start().await.unwrap();
    let client = client();
    for (status, reason, again) in [
        (300, ProblemReason::HttpUnexpected, false),
        (401, ProblemReason::HttpClientError, false),
        (404, ProblemReason::HttpClientError, false),
        (408, ProblemReason::HttpClientError, true),
        (410, ProblemReason::HttpClientError, false),
        (416, ProblemReason::HttpClientError, false),
        (429, ProblemReason::Throttled, true),
        (500, ProblemReason::HttpServerError, true),
        (501, ProblemReason::HttpServerError, false),
        (503, ProblemReason::HttpServerError, true),
    ] {
        server.push("/a", Reply::status(status).body("an error page"));
        let error = client.get(request(&server.uri("/a"))).await.unwrap_err();
        assert_eq!((error.status(), error.reason()), (Some(status), reason));
        assert_eq!(error.disposition() != Disposition::Refuse, again, "{status}");
        assert_eq!((error.requests(), error.is_answer()), (1, true));
    }
}

#[tokio::test]
async fn passing_troubles_are_tried_again_and_every_request_is_counted() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::status(500));
    server.push("/a", Reply::status(503).header("retry-after", "0"));
    server.push("/a", Reply::status(302).header("location", "/b"));
    server.push("/b", Reply::ok("abc"));
    let client = client();
    let response = client.get_with_retries(request(&server.uri("/a"))).await.unwrap();
    assert_eq!((response.requests(), client.requests()), (4, 4));
    assert_eq!(whole(response).await, "abc");
    server.assert_followed();
}

#[tokio::test]
async fn attempts_end_with_the_last_error() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/down", Reply::status(502));
    server.always("/gone", Reply::status(410));
    let client = web::Client::new(WebConfig { attempts: 3, ..config() }).unwrap();
    let error = client.get_with_retries(request(&server.uri("/down"))).await.unwrap_err();
    assert_eq!((error.status(), error.requests()), (Some(502), 3));
    let error = client.get_with_retries(request(&server.uri("/gone"))).await.unwrap_err();
    assert_eq!((error.status(), error.requests()), (Some(410), 1));
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_server_that_wants_a_long_rest_is_left_alone() {
    let server = ScriptedServer::start().await.unwrap();
    let reply = Reply::status(503).header("retry-after", "Sun, 06 Nov 1994 08:59:37 GMT");
    server.push("/a", reply.header("date", "Sun, 06 Nov 1994 08:49:37 GMT"));
    let client = client();
    let error = client.get_with_retries(request(&server.uri("/a"))).await.unwrap_err();
    assert_eq!(error.disposition(), Disposition::Retry { after: Some(SignedDuration::from_secs(600)) });
    assert_eq!(error.reason(), ProblemReason::Throttled);

    let origin: Origin = server.url().parse().unwrap();
    assert!(client.resting(&origin).is_some_and(|left| left > Duration::from_secs(500)));
    let error = client.get_with_retries(request(&server.uri("/b"))).await.unwrap_err();
    assert_eq!((error.kind(), error.requests()), (ErrorKind::CoolingDown, 0));
    assert!(
        matches!(error.disposition(), Disposition::Retry { after: Some(after) } if after.as_secs() > 500)
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn redirects_are_followed_and_recorded_with_the_condition_kept() {
    let [first, second] = [ScriptedServer::start().await.unwrap(), ScriptedServer::start().await.unwrap()];
    first.push("/a", Reply::status(301).header("location", "b"));
    first.push("/b", Reply::status(307).header("location", second.uri("/c")));
    second.push("/c", Reply::ok("abc"));
    let validators = Validators { etag: Some("\"v1\"".into()), last_modified: None };
    let request = GetRequest { validators, ..request(&first.uri("/a")) };
    let response = client().get(request).await.unwrap();
    let passed: Vec<_> = response.redirects().iter().map(|url| url.as_str()).collect();
    assert_eq!(passed, [first.uri("/a"), first.uri("/b")]);
    assert_eq!(response.final_url().as_str(), second.uri("/c"));
    assert_eq!(response.requests(), 3);
    assert_eq!(second.requests()[0].header("if-none-match"), Some("\"v1\""));
    assert_eq!(whole(response).await, "abc");
}

#[tokio::test]
async fn redirects_that_lead_nowhere_are_errors() {
    let server = ScriptedServer::start().await.unwrap();
    let sends_on = |path: &str, to: &str| {
        server.always(path, Reply::status(302).header("location", to));
    };
    sends_on("/circle", "/circle/2");
    sends_on("/circle/2", "/circle");
    sends_on("/file", "file:///etc/passwd");
    server.always("/silent", Reply::status(302));
    for step in 0..=11 {
        sends_on(&format!("/long/{step}"), &format!("/long/{}", step + 1));
    }
    let client = client();
    for (path, kind, requests) in [
        ("/circle", ErrorKind::RedirectLoop, 2),
        ("/file", ErrorKind::BadRedirect, 1),
        ("/silent", ErrorKind::BadRedirect, 1),
        ("/long/0", ErrorKind::TooManyRedirects, 11),
    ] {
        let error = client.get_with_retries(request(&server.uri(path))).await.unwrap_err();
        assert_eq!((error.kind(), error.requests()), (kind, requests), "{error}");
        assert_eq!((error.reason(), error.disposition()), (ProblemReason::Redirect, Disposition::Refuse));
    }
}

#[tokio::test]
async fn a_failure_behind_a_redirect_names_where_it_happened() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::status(302).header("location", "/b"));
    server.push("/b", Reply::status(404));
    let failure = client().get(request(&server.uri("/a"))).await.unwrap_err().into_failure();
    assert_eq!(failure.evidence.final_url, Some(server.uri("/b")));
    assert_eq!(failure.evidence.status, Some(404));
    assert!(failure.message.contains(&server.uri("/a")), "{}", failure.message);
}

#[tokio::test]
async fn the_head_of_an_answer_can_be_had_alone() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::ok("body").header("link", "</inbox>; rel=inbox"));
    let asked = GetRequest { head: true, ..request(&server.uri("/a")) };
    let mut response = client().get(asked).await.unwrap();
    assert_eq!(response.header("link"), Some("</inbox>; rel=inbox"));
    assert_eq!(response.chunk().await.unwrap(), None);
    assert_eq!(server.requests_at("/a")[0].method.as_str(), "HEAD");
}

#[tokio::test]
async fn a_request_that_is_to_stay_at_its_origin_follows_no_redirect_away_from_it() {
    let server = ScriptedServer::start().await.unwrap();
    let other = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::status(302).header("location", "/b"));
    server.push("/b", Reply::status(302).header("location", other.uri("/c")));
    let asked = GetRequest { within_origin: true, ..request(&server.uri("/a")) };
    let error = client().get(asked).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadRedirect);
    assert!(error.to_string().contains("another origin"), "{error}");
    assert_eq!(other.requests().len(), 0);
    server.assert_followed();
}
