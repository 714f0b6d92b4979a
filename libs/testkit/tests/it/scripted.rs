//! The scripted server as a client sees it.
#![expect(clippy::disallowed_methods, reason = "bodies that the test made itself are small")]

use reqwest::Client;
use testkit::scripted::{Reply, ScriptedServer};

#[tokio::test]
async fn replies_come_in_their_order_and_requests_are_kept() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a?b=1", Reply::status(503).header("Retry-After", "2")).push("/a?b=1", Reply::ok("hello"));
    let client = Client::new();
    let busy = client.get(server.uri("/a?b=1")).header("X-Try", "1").send().await.unwrap();
    assert_eq!((busy.status().as_u16(), &busy.headers()["retry-after"]), (503, &"2".parse().unwrap()));
    let good = client.post(server.uri("/a?b=1")).body("asked").send().await.unwrap();
    assert_eq!(good.text().await.unwrap(), "hello");
    let requests = server.requests_at("/a?b=1");
    assert_eq!((requests[0].method.as_str(), requests[0].header("x-try")), ("GET", Some("1")));
    assert_eq!((requests[1].method.as_str(), requests[1].body.as_ref()), ("POST", b"asked".as_slice()));
    server.assert_followed();
}

#[tokio::test]
async fn a_reply_can_break_off() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::ok("hello").cut_after(2));
    assert!(reqwest::get(server.uri("/a")).await.unwrap().bytes().await.is_err());
    assert!(reqwest::get(server.uri("/a")).await.unwrap().bytes().await.is_err());
}

#[tokio::test]
#[should_panic(expected = "GET /b")]
async fn a_request_outside_the_script_is_told() {
    let server = ScriptedServer::start().await.unwrap();
    assert_eq!(reqwest::get(server.uri("/b")).await.unwrap().status(), 501);
    server.assert_followed();
}

#[tokio::test]
#[should_panic(expected = "nobody asked for")]
async fn a_reply_left_over_is_told() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::ok("hello")).assert_followed();
}
