//! Fleets that read inboxes of others (LDN-4): that of another fleet, where this project and a third-party sender leave
//! notifications.

use crate::common::api::{Api, READ};
use crate::common::ldn::{fleet, gateway, left, plain_update, py_ldnlib, update};
use crate::common::{Fleet, Run, Service, source};
use reqwest::StatusCode;
use serde_json::Value;
use simulated_source::SourceSpec;
use testkit::scripted::{Reply, ScriptedServer};
use testkit::waiting::found;

/// Services that harvest, poll inboxes each second, and send a token to the gateway at `inbox`.
fn harvesters(fleet: &Fleet, inbox: &Api) -> Service {
    let token = fleet.path("token");
    std::fs::write(&token, READ).unwrap();
    let credential = format!("{{origin: '{}', bearer: {{file: '{}'}}}}", inbox.base, token.display());
    fleet.start_asking(
        &["scheduler", "fetcher", "unpacker", "verifier"],
        &format!("credentials: {{inbox: {credential}}}"),
        "scheduler: {inbox_credentials: [inbox], inbox_poll_seconds: 1, hint_debounce_seconds: 1}",
    )
}

/// The run of the one Source, as soon as it has ended. It has no schedule, and no operator requests it.
async fn run(fleet: &Fleet) -> Value {
    let over = async || {
        let runs = Run::of(fleet.command("run").args(["ls", "--json"])).exits(0);
        let mut runs = runs.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        runs.find(|run| run["state"] == "finished")
    };
    found("a run is over", over).await
}

#[tokio::test]
async fn what_is_left_in_the_inbox_of_another_fleet_has_the_source_looked_at() {
    let harvested = source(SourceSpec::default().resources(4)).await;
    let keeper = fleet().await;
    let reader = fleet().await;
    let (_gateway, api) = gateway(&keeper, "").await;
    // About something else, and sent before any consumer reads.
    left(&api, "/ldn/inbox", &update("https://elsewhere.example.com/1")).await.is(StatusCode::CREATED);
    let _harvesting = harvesters(&reader, &api);
    reader.add(&harvested.well_known(), &["--inbox", &format!("{}/ldn/inbox", api.base)]);
    left(&api, "/ldn/inbox", &update(&format!("{}/1", harvested.url()))).await.is(StatusCode::CREATED);
    let run = run(&reader).await;
    assert_eq!(run["counters"]["stored"], 4, "{run}");
}

#[tokio::test]
async fn what_py_ldnlib_leaves_in_the_inbox_of_a_page_has_the_source_looked_at() {
    let harvested = source(SourceSpec::default().resources(2)).await;
    let keeper = fleet().await;
    let reader = fleet().await;
    let (_gateway, api) = gateway(&keeper, "").await;
    let target = format!("{}/ldn", api.base);
    let _harvesting = harvesters(&reader, &api);
    reader.add(&harvested.well_known(), &["--inbox", &target]);
    py_ldnlib(&target, &plain_update(&format!("{}/1", harvested.url()))).await;
    let run = run(&reader).await;
    assert_eq!(run["counters"]["stored"], 2, "{run}");
}

#[tokio::test]
async fn an_inbox_that_a_page_names_in_turtle_is_read() {
    let harvested = source(SourceSpec::default().resources(4)).await;
    let reader = fleet().await;
    let page = ScriptedServer::start().await.unwrap();
    let turtle = "<> <http://www.w3.org/ns/ldp#inbox> </inbox> .\n";
    page.always("/me", Reply::ok(turtle.to_owned()).header("content-type", "text/turtle"));
    let json = |body: String| Reply::ok(body).header("content-type", "application/ld+json");
    let contains = format!(
        r#"{{"@context": "http://www.w3.org/ns/ldp", "@id": "{}", "contains": ["{}"]}}"#,
        page.uri("/inbox"),
        page.uri("/inbox/1")
    );
    page.always("/inbox", json(contains));
    page.always("/inbox/1", json(plain_update(&format!("{}/1", harvested.url())).to_string()));
    let _harvesting = reader.start(
        &["scheduler", "fetcher", "unpacker", "verifier"],
        "scheduler: {inbox_poll_seconds: 1, hint_debounce_seconds: 1}",
    );
    reader.add(&harvested.well_known(), &["--inbox", &page.uri("/me")]);
    let run = run(&reader).await;
    assert_eq!(run["counters"]["stored"], 4, "{run}");
}
