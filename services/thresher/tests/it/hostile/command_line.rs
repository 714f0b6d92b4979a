//! First steps at the command line: added Sources run, many Sources at once, closed pipes.

use std::fmt::Write as _;
use std::time::Instant;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use simulated_source::SourceSpec;
use testkit::servers::{NatsFixture, S3Fixture};

use crate::common::api::{self, Api, JsonBody as _, OPERATE, send};
use crate::common::{Fleet, Service, source};

/// A gateway with these fields instead of others, and no other service.
async fn gateway_with(more: &str) -> (Fleet, Service, Api) {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let settings = fleet.gateway().replace("requests_per_second: 10000", more);
    let gateway = fleet.start(&["gateway"], &settings);
    let api = Api::of(&gateway).await;
    (fleet, gateway, api)
}

/// A file with so many Sources, for `thresher apply`.
fn file_of(fleet: &Fleet, count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "- entry: https://s{n}.example.org/").expect("a String");
    }
    let path = fleet.path("many.yaml");
    std::fs::write(&path, text).expect("our own folder");
    path.display().to_string()
}

/// How often a route of the gateway was requested.
async fn requests(gateway: &Service, api: &Api, route: &str) -> u64 {
    let admin = api.at(format!("http://{}", gateway.admin())).with(None);
    let text = String::from_utf8(admin.get("/metrics").await.body).expect("a text");
    let begin = format!("thresher_gateway_requests_total{{route=\"{route}\",");
    let counts =
        text.lines().filter(|line| line.starts_with(&begin)).filter_map(|line| line.rsplit(' ').next());
    counts.map(|count| count.parse::<u64>().expect("a number")).sum()
}

/// How often any route of the gateway was requested.
async fn all_requests(gateway: &Service, api: &Api) -> u64 {
    let admin = api.at(format!("http://{}", gateway.admin())).with(None);
    let text = String::from_utf8(admin.get("/metrics").await.body).expect("a text");
    let counts = text.lines().filter(|line| line.starts_with("thresher_gateway_requests_total{"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn a_thousand_sources_are_applied_in_few_requests_and_asked_to_run_though_the_rate_is_low() {
    let (fleet, gateway, api) = gateway_with("requests_per_second: 20").await;
    let file = file_of(&fleet, 1_000);
    let done = |lines: &[Value], what: &str| lines.iter().filter(|line| line["done"] == what).count();
    for (options, what) in [(&["--dry-run"][..], "created"), (&[], "created"), (&[], "unchanged")] {
        let began = Instant::now();
        let words = [&["apply", "-f", &file, "--json"], options].concat();
        let lines = api.ask(&words).await.exits(0).json_lines();
        println!("apply {options:?} of 1,000 Sources: {:?}", began.elapsed());
        assert_eq!(done(&lines, what), 1_000, "{what}");
        assert_eq!(lines[7]["entry"], "https://s7.example.org/", "in the order of the file");
        // It took 40 s when each was a request of its own.
        let all = all_requests(&gateway, &api).await;
        assert!(all < 300, "{all} requests for 1,000 Sources, three times at most");
    }
    assert_eq!(requests(&gateway, &api, "/v1/sources:batch").await, 10, "what is unchanged is not sent");

    let began = Instant::now();
    let lines = api.ask(&["run", "submit", "--all", "--json"]).await.exits(0).json_lines();
    println!("run submit --all of 1,000 Sources: {:?}", began.elapsed());
    assert_eq!(lines.iter().filter(|line| line["run"].is_string()).count(), 1_000);
    assert_eq!(requests(&gateway, &api, "/v1/runs:batch").await, 5);
    let again = api.ask(&["run", "submit", "--like", "https://s7?.example.org/", "--json"]).await.exits(3);
    let refused = again.json_lines();
    assert_eq!(refused.len(), 10, "{again}");
    assert!(
        refused.iter().all(|line| line["message"].as_str().is_some_and(|why| why.contains("queued"))),
        "{again}"
    );
    api.ask(&["run", "submit", "--like", "nothing*"]).await.exits(2).complains(&["Source"], &["source ls"]);
    api.ask(&["run", "submit"]).await.exits(2);
    api.ask(&["run", "submit", "--all", "--allow-deletes"]).await.exits(2);
}

#[tokio::test]
async fn a_batch_is_bounded_does_each_item_by_itself_and_nothing_twice() {
    let (_fleet, _gateway, api) = gateway_with("requests_per_second: 1000, batch_bytes: 20000").await;
    let wanted = |entry: &str| json!({"spec": {"entry": entry}});
    let good = json!({"sources": [wanted("https://a.example/"), wanted("ftp://b.example/"), wanted("https://c.example/")]});
    let done = |answer: &Value| -> Vec<Value> {
        answer["items"].as_array().expect("a list").iter().map(|item| item["done"].clone()).collect()
    };
    let dry = api.post("/v1/sources:batch?dry_run=true", good.clone()).await.is(StatusCode::OK).json();
    assert_eq!(done(&dry), ["created", "refused", "created"]);
    let first = api.post("/v1/sources:batch", good.clone()).await.is(StatusCode::OK).json();
    assert_eq!(done(&first), ["created", "refused", "created"]);
    let why = &first["items"][1]["problem"];
    assert_eq!((why["status"].as_u64(), &why["errors"][0]["field"]), (Some(422), &json!("entry")));
    assert_eq!(
        done(&api.post("/v1/sources:batch", good).await.json()),
        ["unchanged", "refused", "unchanged"]
    );
    // A Source that changed since it was read stays as it is.
    let stale = json!({"spec": {"entry": "https://a.example/", "strict": true}, "revision": 0});
    let answer = api.post("/v1/sources:batch", json!({"sources": [stale]})).await.json();
    assert_eq!(answer["items"][0]["problem"]["status"], 412, "{answer}");

    let many = json!({"sources": vec!["a-1"; 1_001]});
    api.post("/v1/runs:batch", many).await.is(StatusCode::UNPROCESSABLE_ENTITY);
    // Short enough to be sent before it is refused. A client that still sends may miss the reason.
    let long = json!({"sources": ["a".repeat(21_000)]});
    api.post("/v1/runs:batch", long).await.is(StatusCode::PAYLOAD_TOO_LARGE);

    let id = |n: usize| first["items"][n]["source"].as_str().expect("a name");
    let runs = json!({"sources": [id(0), "nowhere-1", id(2)], "submit": {"mode": "baseline"}});
    let operator = api.with(Some(OPERATE));
    let ask = async || {
        let request = operator.request(Method::POST, "/v1/runs:batch").header("idempotency-key", "one");
        send(request.json_body(&runs)).await.is(StatusCode::OK).json()
    };
    let asked = ask().await;
    assert_eq!(asked["items"][0]["run"]["mode"], "baseline", "{asked}");
    assert_eq!(asked["items"][1]["problem"]["status"], 404);
    assert_eq!(ask().await, asked, "the same request again asks for nothing more");
    operator.post("/v1/sources:batch", json!({"sources": []})).await.is(StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_source_that_is_added_without_a_schedule_runs_once_unless_that_is_not_wanted() {
    let held = source(SourceSpec::default().resources(3)).await;
    let (fleet, _all, api) = api::fleet().await;
    let (url, idle) = (held.well_known(), "https://idle.example.org/");
    let added = api.ask(&["source", "add", &url]).await.exits(0);
    assert!(added.stdout.contains(" added, first run ") && added.stdout.contains("run watch"), "{added}");
    assert!(added.stdout.contains("no schedule"), "{added}");
    api.ask(&["run", "watch", &url]).await.exits(0);
    assert_eq!(fleet.destination().present().len(), 3);

    let added = api.ask(&["source", "add", idle, "--no-run"]).await.exits(0);
    assert!(added.stdout.contains("run submit") && !added.stdout.contains("first run"), "{added}");
    for (options, said) in [
        (&["--every", "6h"][..], "next run 2"),
        (&["--disabled"], "disabled: "),
        (&["--follow", "--disabled"], "disabled: "),
    ] {
        let words = [&["source", "add", idle, "--replace"], options].concat();
        let changed = api.ask(&words).await.exits(0);
        assert!(changed.stdout.contains(said), "{said}: {changed}");
    }
    let runs = api.get("/v1/runs").await.is(StatusCode::OK).json();
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "only the first Source has run: {runs}");
}
