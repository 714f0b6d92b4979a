//! The gateway's edge: connections, hosts, wrong tokens, event streams, bodies.

use std::fs;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use simulated_source::SourceSpec;
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::found;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::common::api::{self, ADMIN, Api, OPERATE, send};
use crate::common::console::Visitor;
use crate::common::ldn::added;
use crate::common::{Fleet, Service, source};

/// The connections that the attacker opens: more than the gateway's limit.
const ATTACKERS: usize = 600;

/// A gateway with these fields, and no other service.
async fn gateway(more: &str) -> (Fleet, Service, Api) {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let settings = fleet.gateway().replace("gateway: {", &format!("gateway: {{{more}, "));
    let gateway = fleet.start(&["gateway"], &settings);
    let api = Api::of(&gateway).await;
    (fleet, gateway, api)
}

/// A value among the metrics.
async fn metric(gateway: &Service, api: &Api, line: &str) -> u64 {
    let admin = api.at(format!("http://{}", gateway.admin())).with(None);
    let text = admin.get("/metrics").await.text();
    let line = format!("{line} ");
    text.lines().find_map(|text| text.strip_prefix(&line)).expect("it is shown").parse().expect("a number")
}

/// The current memory of a process, in bytes.
fn resident(service: &Service) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", service.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is shown");
    line.trim().strip_suffix(" kB").expect("in kB").parse::<u64>().expect("a number") * 1024
}

/// A connection with a request head of this many bytes that does not end.
async fn endless_head(address: &str, bytes: usize) -> Option<TcpStream> {
    let mut line = TcpStream::connect(address).await.ok()?;
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(bytes));
    // It may be refused before all of it is sent, or wait for a free connection.
    let _ = timeout(Duration::from_millis(50), line.write_all(head.as_bytes())).await;
    Some(line)
}

#[tokio::test]
async fn connections_without_number_take_bounded_memory_and_the_gateway_serves_again_when_they_end() {
    let (_fleet, gateway, api) = gateway("connections: 500, connections_per_client: 0").await;
    let address = api.base.trim_start_matches("http://").to_owned();
    api.get("/v1/sources").await.is(StatusCode::OK);
    let before = resident(&gateway);
    for bytes in [400_000, 16_000] {
        let mut open = Vec::new();
        for _ in 0..ATTACKERS {
            open.extend(endless_head(&address, bytes).await);
        }
        if bytes < 32_768 {
            found("all places are taken", async || {
                (metric(&gateway, &api, "thresher_gateway_connections").await == 500).then_some(())
            })
            .await;
            assert!(metric(&gateway, &api, "thresher_gateway_connections_full_total").await > 0);
        }
        let taken = resident(&gateway).saturating_sub(before);
        assert!(taken < 80 * 1024 * 1024, "{taken} bytes for heads of {bytes}");
        drop(open);
        api.get("/v1/sources").await.is(StatusCode::OK);
    }
}

#[tokio::test]
async fn without_tokens_a_page_of_another_site_is_not_answered() {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let gateway = fleet.start(&["gateway"], "gateway: {listen: '127.0.0.1:0', allow_anonymous: true}");
    let api = Api::of(&gateway).await.with(None);
    let from =
        async |host: &str, path: &str| send(api.request(Method::GET, path).header("host", host)).await.status;
    for path in ["/v1/sources", "/console"] {
        assert_eq!(from("evil.example:8080", path).await, 421, "{path}");
        assert_eq!(from("localhost:8080", path).await, 200, "{path}");
    }
    let added = api.request(Method::POST, "/v1/sources").header("host", "evil.example");
    let added = added.header("content-type", "application/json").body(r#"{"entry": "https://e.org/"}"#);
    let refused = send(added).await.is(StatusCode::MISDIRECTED_REQUEST);
    assert!(refused.json()["detail"].as_str().expect("a text").contains("gateway.tokens"));
}

#[tokio::test]
async fn guessing_goes_no_faster_than_allowed_and_is_counted() {
    let (_fleet, gateway, api) = gateway("wrong_tokens_per_minute: 3, trusted_proxies: ['127.0.0.1']").await;
    let shown = async |token: &str, client: &str| {
        let request = api.with(Some(token)).request(Method::GET, "/v1/sources");
        send(request.header("x-forwarded-for", client)).await
    };
    for _ in 0..3 {
        shown("a token that is guessed", "203.0.113.1").await.is(StatusCode::UNAUTHORIZED);
    }
    let refused = shown(ADMIN, "203.0.113.1").await.is(StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.header("retry-after").parse::<u64>().expect("seconds") <= 60);
    shown(ADMIN, "203.0.113.2").await.is(StatusCode::OK);
    shown(ADMIN, "1.1.1.1, 203.0.113.1").await.is(StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(metric(&gateway, &api, "thresher_gateway_wrong_tokens_total{door=\"api\"}").await, 3);

    let visitor = Visitor::of(&api);
    for status in [401, 401, 401, 429] {
        let answer = visitor.post("/console/sign-in", &[("token", "a token that is guessed")]).await;
        assert_eq!(answer.status, status);
    }
    assert_eq!(metric(&gateway, &api, "thresher_gateway_wrong_tokens_total{door=\"console\"}").await, 3);
}

#[tokio::test]
async fn an_event_stream_ends_when_its_token_is_taken_back() {
    let (fleet, _gateway, api) = gateway("header_timeout_seconds: 75").await;
    let id = added(&api, "https://example.org/").await;
    let run = api.post(&format!("/v1/sources/{id}/runs"), json!({})).await.is(StatusCode::CREATED).json();
    let path = format!("/v1/sources/{id}/runs/{}/events", run["run"].as_str().expect("a name"));
    let mut told = api.with(Some(OPERATE)).request(Method::GET, &path).send().await.expect("an answer");
    assert!(told.chunk().await.expect("it goes on").is_some(), "the present state comes first");
    let tokens = fs::read_to_string(fleet.path("tokens.yaml")).expect("our own file");
    let without: Vec<&str> = tokens.lines().filter(|line| !line.contains(OPERATE)).collect();
    fs::write(fleet.path("tokens.yaml"), without.join("\n")).expect("our own folder");
    let rest = async { while told.chunk().await.expect("it ends as it should").is_some() {} };
    timeout(Duration::from_secs(60), rest).await.expect("nobody waits for its next event");
    api.with(Some(OPERATE)).get(&path).await.is(StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_body_that_drips_is_refused_before_any_token_is_known() {
    let (_fleet, _gateway, api) = gateway("body_timeout_seconds: 1").await;
    let mut line = TcpStream::connect(api.base.trim_start_matches("http://")).await.expect("it listens");
    let origin = &api.base;
    let head = format!(
        "POST /console/sign-in HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\nContent-Length: 1000\r\n\r\ntok",
        origin.trim_start_matches("http://")
    );
    line.write_all(head.as_bytes()).await.expect("it reads");
    let mut answer = vec![0; 12];
    timeout(Duration::from_secs(60), line.read_exact(&mut answer))
        .await
        .expect("in time")
        .expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 408");
}

#[tokio::test]
async fn where_tls_ends_before_the_gateway_the_cookie_is_kept_for_this_host_alone() {
    let (_fleet, _gateway, api) = gateway("public_url: 'https://console.example.org/'").await;
    let visitor = Visitor::of(&api);
    let signed_in = visitor.post("/console/sign-in", &[("token", ADMIN)]).await.is(StatusCode::SEE_OTHER);
    let cookie = signed_in.header("set-cookie").to_owned();
    assert!(cookie.starts_with("__Host-thresher-session=") && cookie.ends_with("; Secure"), "{cookie}");
    assert_eq!(visitor.signed_in(ADMIN).await.get("/console").await.status, 200);
}

#[tokio::test]
async fn what_a_source_has_sent_is_handed_out_as_a_file_and_no_page_runs_it() {
    let held = source(SourceSpec::default().resources(1)).await;
    let (fleet, _all, api) = api::fleet().await;
    let id = added(&api, &held.well_known()).await;
    fleet.harvest(&held.well_known()).await.exits(0);
    let uri = held.resource_uri(0);
    let visitor = Visitor::of(&api).signed_in(ADMIN).await;
    let query = url::form_urlencoded::byte_serialize(uri.as_bytes()).collect::<String>();
    let below = format!("sources/{id}/resources/content?uri={query}");
    let end = "\"";
    for answer in [api.get(&format!("/v1/{below}")).await, visitor.get(&format!("/console/{below}")).await] {
        let answer = answer.is(StatusCode::OK);
        let said = answer.header("content-disposition");
        assert!(said.starts_with("attachment; filename=\"") && said.ends_with(end), "{said}");
        assert!(answer.header("content-security-policy").contains("sandbox"));
    }
    let page = visitor.get("/console").await.is(StatusCode::OK);
    let policy = page.header("content-security-policy").to_owned();
    let scripts = policy.split(';').find(|part| part.trim().starts_with("script-src")).expect("it is said");
    let digest = scripts.trim().strip_prefix("script-src '").and_then(|rest| rest.strip_suffix('\''));
    let digest = digest.expect("one script and no place");
    assert!(digest.starts_with("sha256-"), "{scripts}");
    assert!(
        page.text().contains(&format!("integrity=\"{digest}\"")),
        "the page loads the script that is named"
    );
}
