//! Fleets that notify others of changes (LDN-3): other fleets, and pages that a test writes.

use std::time::Duration;

use crate::common::api::Api;
use crate::common::ldn::{ORIGIN, added, fleet};
use crate::common::{asked_for, source};
use model::SourceId;
use reqwest::StatusCode;
use serde_json::{Value, json};
use simulated_source::{Changes, SourceSpec};
use testkit::scripted::{Recorded, Reply, ScriptedServer};
use testkit::waiting::{found, until};

/// The services that harvest.
const HARVESTERS: [&str; 4] = ["scheduler", "fetcher", "unpacker", "verifier"];

/// The announcements in a page's inbox.
fn announced(page: &ScriptedServer) -> Vec<Value> {
    let read = |request: &Recorded| serde_json::from_slice(&request.body).expect("JSON");
    page.requests_at("/inbox").iter().map(read).collect()
}

fn links_to_inbox() -> Reply {
    Reply::status(200).header("link", "</inbox>; rel=\"http://www.w3.org/ns/ldp#inbox\"")
}

#[tokio::test]
async fn a_fleet_that_follows_the_same_source_is_told_of_changes_and_looks_at_once() {
    let harvested = source(SourceSpec::default().resources(5)).await;
    let teller = fleet().await;
    let told = fleet().await;
    let settings = format!("scheduler: {{hint_debounce_seconds: 1}}\n{}", told.inboxes("", "none-1"));
    // The sender has no token and another origin than the Source. It is listed with the Source about which it may send.
    let id = SourceId::of_entry(&harvested.well_known().parse().unwrap());
    let senders = format!("- {{name: teller, origins: ['{ORIGIN}'], sources: [{id}]}}\n");
    std::fs::write(told.path("senders.yaml"), senders).unwrap();
    let all = told.start(&[], &settings);
    let api = Api::of(&all).await;
    assert_eq!(added(&api, &harvested.well_known()).await, id.to_string());
    let _telling = teller.start(&HARVESTERS, &format!("scheduler: {{identity: '{ORIGIN}/harvester'}}"));
    let target = format!("{}/ldn/sources/{id}", api.base);
    teller.add(&harvested.well_known(), &["--notify", &target]);

    let inbox = format!("/ldn/sources/{id}/inbox");
    let kept = async |count: usize| {
        let contains = async || {
            let listed = api.get(&inbox).await.is(StatusCode::OK).json();
            let listed = listed["contains"].as_array().expect("a list").clone();
            (listed.len() >= count).then_some(listed)
        };
        found(format!("{count} notifications are kept"), contains).await
    };
    let runs = async |count: usize| {
        let over = async || {
            let page = api.get(&format!("/v1/sources/{id}/runs")).await.is(StatusCode::OK).json();
            let runs = page["items"].as_array().expect("a list").clone();
            (runs.len() >= count && runs.iter().all(|run| run["state"] == "finished")).then_some(runs)
        };
        found(format!("{count} runs are over"), over).await
    };
    teller.harvest(&harvested.well_known()).await.exits(0);
    let first = kept(1).await;
    let path = first[0].as_str().unwrap().strip_prefix(&api.base).unwrap().to_owned();
    let said = api.get(&path).await.is(StatusCode::OK).json();
    assert_eq!(
        (&said["type"], &said["object"]["object"]),
        (&json!("Announce"), &json!(harvested.well_known()))
    );
    assert_eq!(said["object"]["result"][0]["totalItems"], 5);
    assert_eq!(runs(1).await[0]["requested_by"], "hint");

    // A run that changes nothing sends nothing.
    teller.harvest(&harvested.well_known()).await.exits(0);
    harvested.change(Changes { create: 2, update: 1, delete: 1 });
    teller.harvest(&harvested.well_known()).await.exits(0);
    let second = kept(2).await;
    assert_eq!(second.len(), 2);
    let path = second[1].as_str().unwrap().strip_prefix(&api.base).unwrap().to_owned();
    assert_eq!(api.get(&path).await.json()["summary"], "3 stored, 1 deleted");
    let last = &runs(2).await[0];
    assert_eq!((&last["requested_by"], &last["counters"]["stored"]), (&json!("hint"), &json!(3)));
}

#[tokio::test]
async fn what_a_scheduler_that_was_killed_had_in_hand_is_told_by_the_next_one() {
    let harvested = source(SourceSpec::default().resources(3)).await;
    let page = ScriptedServer::start().await.unwrap();
    page.push("/me", Reply::status(200).delay(Duration::from_secs(600)));
    page.always("/me", links_to_inbox()).always("/inbox", Reply::status(201));
    let fleet = fleet().await;
    let first = fleet.start(&HARVESTERS, "");
    fleet.add(&harvested.well_known(), &["--notify", &page.uri("/me")]);
    fleet.harvest(&harvested.well_known()).await.exits(0);
    until("the page is asked", || !page.requests_at("/me").is_empty()).await;
    first.kill();
    let _second = fleet.start(&HARVESTERS, "");
    until("it is told", || !announced(&page).is_empty()).await;
    assert_eq!(announced(&page)[0]["summary"], "3 stored, 0 deleted");
}

#[tokio::test]
async fn what_a_run_had_changed_that_is_given_up_is_told_and_the_next_one_tells_the_rest() {
    let harvested = source(SourceSpec::default().resources(400).latency(Duration::from_millis(20))).await;
    let page = ScriptedServer::start().await.unwrap();
    page.always("/me", links_to_inbox()).always("/inbox", Reply::status(201));
    let stored = || -> u64 {
        let counts = announced(&page);
        counts.iter().map(|said| said["object"]["result"][0]["totalItems"].as_u64().expect("a count")).sum()
    };
    let fleet = fleet().await;
    let _all = fleet.start(&HARVESTERS, "");
    fleet.add(&harvested.well_known(), &["--notify", &page.uri("/me")]);
    // It cannot end before it is given up.
    harvested.allow(200);
    fleet.run("submit", &harvested.well_known(), &[]).exits(0);
    asked_for(&harvested, 200).await;
    fleet.run("cancel", &harvested.well_known(), &[]).exits(0);
    harvested.allow_all();
    until("what it had stored is told", || stored() > 0).await;
    assert!(stored() < 400, "{} are stored already", stored());
    // It is sent before the run has ended.
    fleet.watch(&harvested.well_known()).await;
    fleet.harvest(&harvested.well_known()).await.exits(0);
    until("the rest is told", || stored() >= 400).await;
    assert_eq!(stored(), 400);
}

#[tokio::test]
async fn a_page_may_name_its_inbox_in_turtle() {
    let harvested = source(SourceSpec::default().resources(3)).await;
    let page = ScriptedServer::start().await.unwrap();
    let turtle = "@prefix ldp: <http://www.w3.org/ns/ldp#> .\n<> a ldp:Resource ; ldp:inbox </inbox> .\n";
    page.always("/me", Reply::ok(turtle.to_owned()).header("content-type", "text/turtle; charset=utf-8"));
    page.always("/inbox", Reply::status(201));
    let fleet = fleet().await;
    let _all = fleet.start(&HARVESTERS, "");
    fleet.add(&harvested.well_known(), &["--notify", &page.uri("/me")]);
    fleet.harvest(&harvested.well_known()).await.exits(0);
    until("it is told", || !announced(&page).is_empty()).await;
    assert_eq!(announced(&page)[0]["summary"], "3 stored, 0 deleted");
}
