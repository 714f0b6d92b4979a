//! A fleet backfills: between its syncs, whichever process dies, and no version twice.

use std::collections::BTreeMap;

use model::SourceId;
use reqwest::StatusCode;
use testkit::waiting::{found, until};

use super::*;
use crate::common::api::Api;
use crate::common::{Fleet, Service, wait};
use crate::fleet::{ALL, fleet};

/// Resources of a test: five groups of a scheduler, of which four are committed together.
const OF_A_FLEET: usize = 40;

/// A Source with earlier versions, and a fleet that has harvested it.
struct Harvested {
    case: Case,
    list: String,
    fleet: Fleet,
    scheduler: Service,
    _others: Vec<Service>,
}

fn resources() -> impl Iterator<Item = String> {
    (0..OF_A_FLEET).map(|n| format!("/r{n:02}"))
}

impl Harvested {
    async fn new() -> Self {
        let mut case = Case::new().await;
        let days: Vec<u8> = (1..=VERSIONS as u8).collect();
        let entries: Vec<String> = resources().map(|path| case.with_past(&path, &days)).collect();
        let list = case.list(9, &entries);
        let fleet = fleet().await;
        let scheduler = fleet.start(&["scheduler"], "");
        let others = ALL.iter().filter(|service| **service != "scheduler");
        let others = others.map(|service| fleet.start(&[service], "")).collect();
        fleet.add(&list, &[]);
        fleet.harvest(&list).await.exits(0);
        case.copy = fleet.destination();
        Self { case, list, fleet, scheduler, _others: others }
    }
}

/// `thresher backfill`, through the gateway.
fn command(fleet: &Fleet, list: &str, options: &[&str]) -> std::process::Command {
    let mut command = fleet.command("backfill");
    command.args(["--source", list, "--json"]).args(options);
    command
}

/// Checks that each earlier version is there, once.
async fn has_all_once(case: &Case, list: &str) {
    let history: BTreeMap<_, _> = case.history(list).await;
    assert_eq!(history.len(), OF_A_FLEET);
    for path in resources() {
        let expected: Vec<_> =
            (1..VERSIONS as u8).map(|day| (Sha256::of(body(&path, day).as_bytes()), at(day))).collect();
        assert_eq!(told(&history[&case.site.uri(&path)]), expected, "{path}");
    }
}

#[tokio::test]
async fn a_scheduler_that_dies_in_a_backfill_is_replaced_and_no_version_is_there_twice() {
    let Harvested { case, list, fleet, scheduler, _others } = Harvested::new().await;
    let site = &case.site;
    // In the last group, when the others are committed.
    site.next("/3/r36", version(&body("/r36", 3), 3).delay(Duration::from_secs(600)));
    let gateway = fleet.start(&["gateway"], &fleet.gateway());
    let api = Api::of(&gateway).await;
    let asked = tokio::spawn(wait(command(&fleet, &list, &["--versions", "4"])));
    let runs = format!("/v1/sources/{}/runs", SourceId::of_entry(&list.parse().unwrap()));
    let now = found("four groups are committed", async || {
        let now = api.get(&runs).await.is(StatusCode::OK).json()["items"][0].clone();
        (now["backfill"]["counts"]["resources"] == 32).then_some(now)
    });
    let now = now.await;
    assert_eq!((&now["state"], &now["counters"]["stored"]), (&"running".into(), &128.into()), "{now}");
    until("the last group is fetched", || site.requests_at("/3/r36") == 1).await;
    scheduler.kill();
    let _second = fleet.start(&["scheduler"], "");
    let run = asked.await.expect("no panic").exits(0);
    assert_eq!(["resources", "known", "stored"].map(|name| run.count(name)), [40, 200, 160], "{run}");
    assert_eq!(site.requests_at("/tm/r00"), 1, "what is committed is not asked for again: {run}");
    fleet.watch(&list).await.exits(0);
    // Again: the TimeMaps alone are read.
    let again = wait(command(&fleet, &list, &["--versions", "4"])).await.exits(0);
    assert_eq!((again.count("stored"), again.count("held")), (0, 200), "{again}");
    has_all_once(&case, &list).await;
}

#[tokio::test]
async fn a_sync_comes_before_the_rest_of_a_backfill_which_goes_on_after_it() {
    let Harvested { case, list, fleet, scheduler: _scheduler, _others } = Harvested::new().await;
    for path in resources() {
        for day in 1..VERSIONS as u8 {
            let reply = version(&body(&path, day), day).delay(Duration::from_millis(150));
            case.site.reply(&format!("/{day}{path}"), reply);
        }
    }
    let asked = tokio::spawn(wait(command(&fleet, &list, &["--versions", "4"])));
    until("the backfill has begun", || case.site.requests_at("/1/r00") == 1).await;
    fleet.harvest(&list).await.exits(0);
    assert!(!asked.is_finished(), "the sync came first");
    let run = asked.await.expect("no panic").exits(0);
    assert_eq!((run.count("stored"), run.count("known")), (160, 200), "{run}");
    assert_eq!(case.site.requests_at("/tm/r00"), 1, "it went on where it was");
    has_all_once(&case, &list).await;
}

#[tokio::test]
async fn a_backfill_that_cannot_be_says_why() {
    let case = Case::new().await;
    let list = case.list(9, &[case.with_past("/v", &[1, 2])]);
    let fleet = fleet().await;
    let _services: Vec<_> = ALL.iter().map(|service| fleet.start(&[service], "")).collect();
    fleet.add(&list, &["--keep-versions", "2"]);
    let asked = |options: &[&str]| {
        let mut command = fleet.command("backfill");
        command.args(["--source", &list]).args(options);
        wait(command)
    };
    asked(&["--versions", "5"])
        .await
        .exits(2)
        .complains(&["keep 2 earlier versions"], &["keep_versions to 5"]);
    asked(&["--exclusive"]).await.exits(2).complains(&["no exclusive access"], &["leave it out"]);
    asked(&["--max-size", "1MB"]).await.exits(2).complains(&["max_body_bytes"], &["thresher apply -f"]);
    asked(&[]).await.exits(3).says(&["never synced"]);
    fleet.harvest(&list).await.exits(0);
    let run = asked(&[]).await.exits(0);
    assert!(run.stdout.contains("1 earlier version added"), "{run}");
}
