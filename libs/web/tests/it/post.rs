//! POST requests to hubs and inboxes.

use testkit::scripted::{Reply, ScriptedServer};
use web::{ErrorKind, PostRequest, WebConfig};

use crate::support::{client, config};

fn form(url: &str) -> PostRequest {
    PostRequest {
        headers: vec![("link", "<http://topic/>; rel=\"self\"".to_owned())],
        ..PostRequest::new(url.parse().unwrap(), "application/x-www-form-urlencoded", "hub.mode=subscribe")
    }
}

#[tokio::test]
async fn a_body_arrives_with_its_headers_and_is_counted() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/hub", Reply::status(202).body("thanks"));
    let client = client();
    let mut response = client.post(form(&server.uri("/hub"))).await.unwrap();
    assert_eq!((response.status(), response.chunk().await.unwrap().unwrap()), (202, "thanks".into()));
    let request = &server.requests_at("/hub")[0];
    assert_eq!((request.method.as_str(), &request.body[..]), ("POST", b"hub.mode=subscribe".as_slice()));
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(request.header("link"), Some("<http://topic/>; rel=\"self\""));
    assert_eq!((response.requests(), client.requests()), (1, 1));
    server.assert_followed();
}

#[tokio::test]
async fn a_hub_that_has_moved_is_sent_the_very_same_request() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/hub", Reply::status(307).header("location", "/hub2"));
    server.push("/hub2", Reply::status(308).header("location", "/hub3"));
    server.push("/hub3", Reply::status(202));
    let response = client().post(form(&server.uri("/hub"))).await.unwrap();
    assert_eq!((response.final_url().path(), response.redirects().len()), ("/hub3", 2));
    let request = &server.requests_at("/hub3")[0];
    assert_eq!((request.method.as_str(), &request.body[..]), ("POST", b"hub.mode=subscribe".as_slice()));
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    server.assert_followed();
}

#[tokio::test]
async fn redirects_that_ask_for_another_request_are_not_followed_and_circles_end() {
    for status in [301, 302, 303] {
        let server = ScriptedServer::start().await.unwrap();
        server.push("/hub", Reply::status(status).header("location", "/hub2"));
        let error = client().post(form(&server.uri("/hub"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Status(status));
        server.assert_followed();
    }
    let server = ScriptedServer::start().await.unwrap();
    server.push("/hub", Reply::status(307).header("location", "/hub"));
    let error = client().post(form(&server.uri("/hub"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RedirectLoop);
}

#[tokio::test]
async fn a_refusal_is_told_with_the_time_to_wait_and_nothing_is_sent_twice() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/hub", Reply::status(503).header("retry-after", "7"));
    let error = client().post(form(&server.uri("/hub"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Status(503));
    assert_eq!(server.requests_at("/hub").len(), 1);
    assert!(error.to_string().contains("/hub"), "{error}");
    server.assert_followed();
}

#[tokio::test]
async fn a_hub_in_the_operators_own_network_is_not_reached_unless_it_is_allowed() {
    let server = ScriptedServer::start().await.unwrap();
    let strict = WebConfig { addresses: web::AddressPolicy::public_only(), ..config() };
    let client = web::Client::new(strict).unwrap();
    let error = client.post(form(&server.uri("/hub"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RefusedAddress);
    assert_eq!(server.requests().len(), 0);
}
