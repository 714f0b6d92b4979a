//! Which senders may start a run of a Source, and how often.

use std::fs;

use control::{Config, Control};
use jiff::{SignedDuration, Timestamp};
use model::SourceId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use simulated_source::{Changes, SourceSpec};
use testkit::hub::SimulatedHub;
use testkit::waiting::{found, until};

use crate::common::api::{Answer, Api, send};
use crate::common::ldn::{JSON_LD, ORIGIN, added, fleet, gateway, post};
use crate::common::{Fleet, source, truth};

/// The control store.
async fn control(fleet: &Fleet) -> Control {
    let servers = vec![fleet.nats.clone()];
    let namespace = fleet.namespace.clone();
    let config = Config { servers, namespace, ..Config::default() };
    Control::connect(&config).await.expect("NATS")
}

/// Leaves a notification without a token that claims to come from `origin`.
async fn claimed(api: &Api, origin: &str, object: &str) -> Answer {
    let body = json!({"type": "Update", "origin": {"id": format!("{origin}/system")}, "object": object});
    send(post(api, "/ldn/inbox", JSON_LD, body)).await.is(StatusCode::CREATED)
}

/// The runs of a Source, newest first, as soon as this many have ended.
async fn finished(api: &Api, source: &str, count: usize) -> Vec<Value> {
    found(format!("{count} runs are over"), async || {
        let page = api.get(&format!("/v1/sources/{source}/runs")).await.is(StatusCode::OK).json();
        let runs = page["items"].as_array().expect("a list").clone();
        let over = runs.iter().filter(|run| run["state"] == "finished").count();
        (over >= count && over == runs.len()).then_some(runs)
    })
    .await
}

fn time(run: &Value, field: &str) -> Timestamp {
    run[field].as_str().expect("a time").parse().expect("a time")
}

#[tokio::test]
async fn who_shows_no_token_wakes_no_source_of_another_origin() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let control = control(&fleet).await;
    let foreign: SourceId = added(&api, "https://repo.example.org/").await.parse().expect("a name");
    let own: SourceId = added(&api, &format!("{ORIGIN}/list.xml")).await.parse().expect("a name");
    claimed(&api, ORIGIN, "https://repo.example.org/a.pdf").await;
    assert!(control.hints().get(&foreign).await.expect("NATS").is_none(), "it is kept, and wakes nobody");
    claimed(&api, ORIGIN, &format!("{ORIGIN}/a.pdf")).await;
    let hint = control.hints().get(&own).await.expect("NATS").expect("its own Source is hinted at");
    assert!(hint.unproved);
}

#[tokio::test]
async fn hints_that_nothing_proves_and_that_bring_nothing_are_taken_up_ever_later() {
    let harvested = source(SourceSpec::default().resources(3)).await;
    let origin = harvested.url();
    let fleet = fleet().await;
    let settings = fleet.inboxes("per_second: 1000", "none-1");
    fs::write(fleet.path("senders.yaml"), format!("- {{name: claims, origins: ['{origin}']}}\n"))
        .expect("ours");
    let all = fleet.start(&[], &format!("scheduler: {{hint_debounce_seconds: 0}}\n{settings}"));
    let api = Api::of(&all).await;
    let id = added(&api, &harvested.well_known()).await;
    for count in 1..=3 {
        claimed(&api, &origin, &format!("{origin}/1")).await;
        finished(&api, &id, count).await;
    }
    let runs = finished(&api, &id, 3).await;
    let pause = |later: usize, before: usize| {
        time(&runs[later], "requested_at").duration_since(time(&runs[before], "finished_at"))
    };
    // The first one brought three resources, the second one nothing.
    assert!(pause(0, 1) >= SignedDuration::from_millis(1_900), "{runs:?}");
}

#[tokio::test]
async fn what_a_hub_delivers_unsigned_has_the_source_looked_at_where_that_is_admitted() {
    let hub = SimulatedHub::start().expect("a free port on loopback");
    let harvested = source(SourceSpec::default().resources(5).hub(hub.url())).await;
    let fleet = fleet().await;
    let settings = fleet.push("http://push.example/", "");
    let all = fleet.start(&[], &format!("scheduler: {{hint_debounce_seconds: 0}}\n{settings}"));
    let api = Api::of(&all).await;
    hub.find_callbacks_at(api.base.clone());
    fleet.add(&harvested.well_known(), &["--push", "unsigned"]);
    fleet.harvest(&harvested.well_known()).await.exits(0);
    until("the hub has verified the subscription", || hub.subscribers().len() == 1).await;
    let callback = hub.subscribers().remove(0).callback;
    let path = callback.strip_prefix("http://push.example").expect("it lies there").to_owned();
    harvested.change(Changes { create: 2, update: 1, delete: 1 });
    // Nothing in it counts, because its sender is unknown.
    let forged = api.with(None).request(Method::POST, &path).body("<urlset>forged</urlset>");
    send(forged).await.is(StatusCode::ACCEPTED);
    until("what is held is what the Source has", || fleet.destination().present() == truth(&harvested)).await;
    let runs = found("the run is over", async || {
        let page = api.get("/v1/runs").await.is(StatusCode::OK).json();
        (page["items"][0]["state"] == "finished").then_some(page)
    })
    .await;
    assert_eq!(runs["items"][0]["requested_by"], "hint");
}
