//! Plans by a gateway: a scheduler reads the Source's documents within its limits, and nothing is harvested.

use std::time::Duration;

use crate::common::api::Api;
use crate::common::{Fleet, Service, Site, asked_for, source, wait};
use reqwest::StatusCode;
use serde_json::{Value, json};
use simulated_source::SourceSpec;
use testkit::scripted::Reply;
use testkit::servers::{NatsFixture, S3Fixture};

async fn fleet() -> Fleet {
    Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await)
}

/// A gateway whose responses wait this long for a plan.
async fn gateway(fleet: &Fleet, seconds: u8) -> (Service, Api) {
    let settings =
        fleet.gateway().replace("gateway: {", &format!("gateway: {{plan_wait_seconds: {seconds}, "));
    let gateway = fleet.start(&["gateway"], &settings);
    let api = Api::of(&gateway).await;
    (gateway, api)
}

/// The comparable part of a plan: times differ each time.
fn ways(plan: &Value) -> Vec<Value> {
    let mut ways = plan["strategies"].as_array().expect("a list").clone();
    for way in &mut ways {
        way.as_object_mut().expect("an object").remove("time");
    }
    ways
}

#[tokio::test]
async fn a_gateway_plans_what_the_command_plans_and_nothing_is_harvested() {
    let source = source(SourceSpec::default().resources(40)).await;
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, 60).await;
    let _scheduler = fleet.start(&["scheduler"], "");
    let url = source.well_known();
    let planned = api.ask(&["plan", &url, "--json"]).await.exits(0);
    let nothing = fleet.path("nothing").display().to_string();
    let mut alone = crate::common::thresher();
    alone.args(["plan", &url, "--into", &nothing, "--json"]);
    let alone = wait(alone).await.exits(0);
    assert_eq!(ways(&planned.json()), ways(&alone.json()));
    assert!(ways(&planned.json()).iter().any(|way| way["chosen"] == true), "{planned}");
    let shown = api.ask(&["plan", &url]).await.exits(0);
    assert!(shown.stdout.contains("resourcelist"), "{shown}");
    let by_http = api.post("/v1/sources/plan", json!({"entry": url})).await.is(StatusCode::OK).json();
    assert_eq!(
        (&by_http["state"], &by_http["estimate"]["strategies"][0]["listed"]),
        (&"done".into(), &40.into()),
        "{by_http}"
    );
    assert_eq!(source.requests().resources, 0);
    assert_eq!(
        api.get("/v1/sources").await.is(StatusCode::OK).json()["items"],
        json!([]),
        "no Source was added"
    );
}

#[tokio::test]
async fn a_plan_waits_for_a_scheduler_and_is_told_where_to_look() {
    let source = source(SourceSpec::default().resources(5)).await;
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, 0).await;
    let asked =
        api.post("/v1/sources/plan", json!({"entry": source.well_known()})).await.is(StatusCode::ACCEPTED);
    let place = asked.header("location").to_owned();
    assert_eq!(asked.json()["state"], "requested");
    assert_eq!(api.get(&place).await.is(StatusCode::ACCEPTED).header("location"), place);
    let _scheduler = fleet.start(&["scheduler"], "");
    let done = testkit::waiting::found("the plan is done", async || {
        let plan = api.get(&format!("{place}?wait_seconds=20")).await;
        (plan.status == 200).then(|| plan.json())
    })
    .await;
    assert_eq!((&done["state"], &done["estimate"]["unread"]), (&"done".into(), &json!([])), "{done}");
    // A plan that cannot be made has a message, and an invalid request is refused.
    let site = Site::start().await;
    let url = site.reply("/nothing.xml", Reply::status(404));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    api.ask(&["plan", &url]).await.exits(3).complains(&[&url, "404"], &["check", "give", "look"]);
    let nobody = json!({"entry": source.url(), "max_deletes_percent": 101});
    api.post("/v1/sources/plan", nobody).await.is(StatusCode::UNPROCESSABLE_ENTITY);
    api.get("/v1/plans/01ARZ3NDEKTSV4RRFFQ69G5FAV").await.is(StatusCode::NOT_FOUND);
    api.get("/v1/plans/none").await.is(StatusCode::NOT_FOUND);
    api.get(&format!("{place}?wait_seconds=21")).await.is(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_plan_whose_scheduler_dies_is_made_by_the_next() {
    let source = source(SourceSpec::default().resources(5).latency(Duration::from_secs(1))).await;
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, 0).await;
    let first = fleet.start(&["scheduler"], "");
    let asked =
        api.post("/v1/sources/plan", json!({"entry": source.well_known()})).await.is(StatusCode::ACCEPTED);
    let place = asked.header("location").to_owned();
    testkit::waiting::until("the Source is asked", || source.requests().documents > 0).await;
    first.kill();
    let _second = fleet.start(&["scheduler"], "");
    let done = testkit::waiting::found("the plan is done", async || {
        let plan = api.get(&format!("{place}?wait_seconds=20")).await;
        (plan.status == 200).then(|| plan.json())
    })
    .await;
    assert_eq!(done["state"], "done", "{done}");
}

#[tokio::test]
async fn a_plan_keeps_to_the_limit_of_an_origin_while_it_is_harvested() {
    let spec = SourceSpec::default().resources(150).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, 60).await;
    let _all = fleet.start(&["scheduler", "fetcher", "unpacker", "verifier"], "");
    let url = source.well_known();
    fleet.add(&url, &["--concurrency", "1"]);
    fleet.run("submit", &url, &[]).exits(0);
    asked_for(&source, 10).await;
    api.ask(&["plan", &url, "--concurrency", "1", "--json"]).await.exits(0);
    fleet.watch(&url).await.exits(0);
    assert_eq!(source.requests().max_open, 1);
}
