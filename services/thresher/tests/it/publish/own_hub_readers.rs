//! Who subscribes to the publisher's own hub: a fleet, and PyPI's flask-websub.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use serde_json::Value;
use simulated_source::{Changes, SourceSpec};
use tempfile::TempDir;
use testkit::relay::Relay;
use testkit::servers::{NatsFixture, S3Fixture, Venv};
use testkit::waiting::{found, until};

use super::hubs::{changed, told_in};
use super::{Served, originals};
use crate::common::api::Api;
use crate::common::{Destination, Fleet, Process, source};

const OWN_HUB: [&str; 3] = ["--own-hub", "--allow-address", "127.0.0.0/8"];

#[tokio::test]
async fn a_fleet_that_subscribes_holds_what_is_published() {
    let source = source(SourceSpec::default().resources(20)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::with(&copy, &OWN_HUB);

    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let relay = Relay::start().unwrap();
    let all = fleet.start(&[], &fleet.push(&relay.url(), ""));
    relay.lead_to(Api::of(&all).await.base);
    fleet.add(&served.well_known(), &[]);
    fleet.harvest(&served.well_known()).await.exits(0);
    let verified = || relay.passed().iter().any(|one| one.method == Method::GET && one.status == 200);
    until("the hub has verified the subscription", verified).await;
    for _ in 0..2 {
        source.change(Changes { create: 2, update: 3, delete: 1 });
        copy.sync(&source.well_known()).exits(0);
        let held = originals(&copy, &[]);
        until("the fleet holds what was published", || {
            originals(&fleet.destination(), &[&served.base]) == held
        })
        .await;
    }
    let taken = relay.passed().into_iter().filter(|one| one.method == Method::POST && one.status == 202);
    assert!(taken.count() >= 2);
}

/// Waits until the subscriber has such events and payloads.
async fn hears(process: &mut Process, what: &str, is_so: impl Fn(&[String], &[Bytes]) -> bool) {
    let look = async || {
        process.say("told");
        let said: Value = serde_json::from_str(&process.hear()).unwrap();
        let texts = |name: &str| -> Vec<String> { serde_json::from_value(said[name].clone()).unwrap() };
        let bodies: Vec<Bytes> = texts("bodies").into_iter().map(Bytes::from).collect();
        tokio::time::sleep(Duration::from_millis(20)).await;
        is_so(&texts("events"), &bodies).then_some(())
    };
    found(what.to_owned(), look).await;
}

#[tokio::test]
async fn a_subscriber_of_flask_websub_finds_the_hub_and_is_told() {
    let source = source(SourceSpec::default().resources(10)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::with(&copy, &OWN_HUB);
    let folder = TempDir::with_prefix("subscriber-").unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/run_subscriber.py");
    let venv = Venv::websub().expect("pip installs what is pinned");
    let mut command = Command::new(venv.program("python"));
    command.arg("-B").arg(program).arg(folder.path()).env("NO_PROXY", "*");
    let mut process = Process::talk(&mut command);
    assert!(process.hear().starts_with("listening "));
    process.say(&format!("subscribe {}notifications.xml", served.base));
    let id = process.hear();

    hears(&mut process, "it is subscribed", |events, _| events == ["subscribe"]).await;
    let expected = changed(&source, &copy).await;
    hears(&mut process, "it is told", |_, bodies| told_in(bodies) == expected).await;
    process.say(&format!("unsubscribe {id}"));
    assert_eq!(process.hear(), "asked");
    hears(&mut process, "it is unsubscribed", |events, _| events == ["subscribe", "unsubscribe"]).await;
}
