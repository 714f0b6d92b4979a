//! Services as separate processes, over NATS and S3: the same harvest as on a laptop, whichever process dies.

use std::time::Duration;

use crate::common::{Destination, Fleet, asked_for, source, truth};
use serde_json::Value;
use simulated_source::{Changes, Fault, Size, SourceSpec};
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::until;

pub(crate) async fn fleet() -> Fleet {
    Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await)
}

pub(crate) const ALL: [&str; 4] = ["scheduler", "fetcher", "unpacker", "verifier"];

/// The output of `ls --json`, without values that rightly differ between two places.
pub(crate) fn listed(copy: &Destination) -> Vec<Value> {
    let mut lines = copy.listed();
    for line in &mut lines {
        let line = line.as_object_mut().expect("one object a line");
        line.remove("location");
        line.remove("stored_at");
    }
    lines
}

#[tokio::test]
async fn a_fleet_holds_what_a_laptop_holds_and_follows_the_same_changes() {
    let source = source(SourceSpec::default().resources(300).size(Size::Range(0, 300_000))).await;
    let fleet = fleet().await;
    let laptop = Destination::directory();
    let _services: Vec<_> = ALL.iter().map(|service| fleet.start(&[service], "")).collect();
    fleet.add(&source.well_known(), &[]);
    fleet.harvest(&source.well_known()).await.exits(0);
    laptop.sync(&source.well_known()).exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    assert_eq!(listed(&fleet.destination()), listed(&laptop));

    source.change(Changes { create: 5, update: 10, delete: 5 });
    source.reset_requests();
    let again = fleet.harvest(&source.well_known()).await.exits(0);
    assert_eq!(again.json()["counters"]["stored"], 15, "{again}");
    assert_eq!(source.requests().resources, 15);
    laptop.sync(&source.well_known()).exits(0);
    assert_eq!(listed(&fleet.destination()), listed(&laptop));
}

#[tokio::test]
async fn one_process_with_all_services_harvests_and_stops_cleanly() {
    let source = source(SourceSpec::default().resources(50)).await;
    let fleet = fleet().await;
    let all = fleet.start(&[], "");
    fleet.add(&source.well_known(), &[]);
    fleet.harvest(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    assert_eq!(all.terminate().await, Some(0));
}

#[tokio::test]
async fn an_audit_of_a_fleet_tells_what_differs_and_repairs_exactly_that() {
    let source = source(SourceSpec::default().resources(60)).await;
    let fleet = fleet().await;
    let _all = fleet.start(&[], "");
    fleet.add(&source.well_known(), &[]);
    fleet.harvest(&source.well_known()).await.exits(0);
    source.change(Changes { create: 3, update: 0, delete: 2 });
    source.reset_requests();
    let run = fleet.harvest_with(&source.well_known(), &["--mode", "audit"]).await.exits(1);
    let audit = &run.json()["counters"]["audit"];
    assert_eq!(
        (&audit["missing"], &audit["extra"], &audit["matching"]),
        (&3.into(), &2.into(), &58.into()),
        "{run}"
    );
    assert_eq!(source.requests().resources, 0);
    fleet.harvest_with(&source.well_known(), &["--mode", "audit", "--repair"]).await.exits(0);
    assert_eq!(source.requests().resources, 3);
    assert_eq!(fleet.destination().present(), truth(&source));
    fleet.harvest_with(&source.well_known(), &["--mode", "audit"]).await.exits(0);
}

#[tokio::test]
async fn every_service_stops_in_mid_transfer_with_exit_0_and_others_finish_the_work() {
    let spec = SourceSpec::default().resources(400).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let first: Vec<_> = ALL.iter().map(|service| fleet.start(&[service], "")).collect();
    fleet.add(&source.well_known(), &[]);
    fleet.run("submit", &source.well_known(), &[]).exits(0);
    asked_for(&source, 100).await;
    let _others: Vec<_> = ALL.iter().map(|service| fleet.start(&[service], "")).collect();
    for service in first {
        assert_eq!(service.terminate().await, Some(0));
    }
    fleet.watch(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    // Fetchers finish their active jobs. The next scheduler repeats unsettled requests, at most one window.
    let asked = source.requests().resources;
    assert!(asked <= 400 + 80, "{asked} requests for 400 resources");
}

#[tokio::test]
async fn the_limit_of_an_origin_holds_over_all_fetchers() {
    let spec = SourceSpec::default().resources(300).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let _schedulers = [fleet.start(&["scheduler", "verifier"], "")];
    let _fetchers: Vec<_> = (0..6).map(|_| fleet.start(&["fetcher"], "")).collect();
    fleet.add(&source.well_known(), &["--concurrency", "8"]);
    // None is answered before several are open.
    source.allow(0);
    fleet.run("submit", &source.well_known(), &[]).exits(0);
    until("several are open", || source.requests().max_in_flight >= 5).await;
    source.allow_all();
    fleet.watch(&source.well_known()).await.exits(0);
    let most = source.requests().max_in_flight;
    assert!((5..=8).contains(&most), "{most} requests were open at a time");
}

#[tokio::test]
async fn documents_take_their_places_at_an_origin_like_resources_whoever_reads_them() {
    // Three entry URLs at one origin are three Sources. While resources of one are fetched, the lists of the others are
    // read.
    let spec = SourceSpec::default().resources(200).entries_per_list(10).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let ways = [source.well_known(), source.capability_list(), source.resource_list()];
    for fetchers in [1, 4] {
        let fleet = fleet().await;
        let _schedulers: Vec<_> = (0..2).map(|_| fleet.start(&["scheduler", "verifier"], "")).collect();
        let _fetchers: Vec<_> = (0..fetchers).map(|_| fleet.start(&["fetcher"], "")).collect();
        source.reset_requests();
        for (n, way) in ways.iter().enumerate() {
            fleet.add(way, &["--concurrency", "2"]);
            fleet.run("submit", way, &[]).exits(0);
            if n == 0 {
                asked_for(&source, 20).await;
            }
        }
        for way in &ways {
            fleet.watch(way).await.exits(0);
        }
        let asked = source.requests();
        assert!(asked.documents >= 3 * 21 && asked.resources >= 3 * 200, "{asked:?}");
        assert_eq!(asked.max_open, 2, "requests open at a time, with {fetchers} fetchers");
    }
}

#[tokio::test]
async fn the_rate_of_a_source_holds_over_all_processes_and_for_its_neighbour_at_the_origin() {
    let source = source(SourceSpec::default().resources(40)).await;
    let fleet = fleet().await;
    let _services: Vec<_> = ["scheduler", "verifier", "fetcher", "fetcher", "fetcher"]
        .iter()
        .map(|service| fleet.start(&[service], ""))
        .collect();
    // The second has no rate of its own, and an entry URL at the same origin.
    let ways = [(source.well_known(), &["--max-rate", "20"][..]), (source.capability_list(), &[])];
    for (way, options) in &ways {
        fleet.add(way, options);
    }
    for (way, _) in &ways {
        fleet.harvest(way).await.exits(0);
    }
    let asked = source.requests();
    assert_eq!(asked.resources, 80, "{asked:?}");
    // Each of the four begins anywhere in the second. Without a shared rate, they would send 80.
    // Four more may be open or about to be sent while the Source or a process stands still, and then come together.
    assert!(asked.most_in_a_second <= 20 + 4 + 4, "{} requests came within a second", asked.most_in_a_second);
}

#[tokio::test]
async fn an_origin_that_asks_one_process_for_patience_is_left_alone_by_all() {
    let spec = SourceSpec::default().resources(1_500).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let _services: Vec<_> = ["scheduler", "verifier", "fetcher", "fetcher", "fetcher", "fetcher"]
        .iter()
        .map(|service| fleet.start(&[service], ""))
        .collect();
    fleet.add(&source.well_known(), &["--concurrency", "8"]);
    // None of those that are to fail is asked for before.
    source.allow(100);
    fleet.run("submit", &source.well_known(), &[]).exits(0);
    asked_for(&source, 100).await;
    for code in [429, 503] {
        let fault = Fault::Status { code, retry_after: Some(3), times: Some(1) };
        source.set_fault(if code == 429 { 700 } else { 1_300 }, fault);
    }
    source.allow_all();
    fleet.watch(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    let asked = source.requests();
    assert_eq!((asked.by_status.get(&429), asked.by_status.get(&503)), (Some(&1), Some(&1)));
    // Where the Source or a process stood still, those that were open or about to be sent then come late, but no more
    // than the limit each time. Processes that do not hear of it would send hundreds.
    assert!(asked.impatient <= 2 * 8, "{asked:?}");
}

#[tokio::test]
async fn a_fetcher_that_is_killed_gives_its_places_at_the_origin_back() {
    let spec = SourceSpec::default().resources(400).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let _stages = fleet.start(&["scheduler", "verifier"], "");
    let only = fleet.start(&["fetcher"], "");
    fleet.add(&source.well_known(), &[]);
    fleet.run("submit", &source.well_known(), &[]).exits(0);
    asked_for(&source, 100).await;
    // It has all permits. No other process gets one before they expire.
    only.kill();
    let _next = fleet.start(&["fetcher"], "");
    fleet.watch(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
}

#[tokio::test]
async fn the_rate_of_an_origin_holds_over_all_processes() {
    let source = source(SourceSpec::default().resources(100)).await;
    let fleet = fleet().await;
    let _services: Vec<_> = ["scheduler", "verifier", "fetcher", "fetcher", "fetcher", "fetcher", "fetcher"]
        .iter()
        .map(|service| fleet.start_asking(&[service], "requests_per_second: 20", ""))
        .collect();
    fleet.add(&source.well_known(), &["--concurrency", "10"]);
    fleet.harvest(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    let most = source.requests().most_in_a_second;
    // Each of the six begins anywhere in the second. Without a shared rate, five fetchers would send 100.
    // Ten more may be open or about to be sent while the Source or a process stands still, and then come together.
    assert!(most <= 20 + 6 + 10, "{most} requests came within a second");
}

#[tokio::test]
async fn the_crawl_delay_of_an_origin_holds_over_all_processes() {
    let spec = SourceSpec::default().resources(50).crawl_delay(Duration::from_millis(100));
    let source = source(spec).await;
    let fleet = fleet().await;
    let _services: Vec<_> = ["scheduler", "verifier", "fetcher", "fetcher", "fetcher", "fetcher", "fetcher"]
        .iter()
        .map(|service| fleet.start(&[service], ""))
        .collect();
    fleet.add(&source.well_known(), &["--concurrency", "10"]);
    fleet.harvest(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    let most = source.requests().most_in_a_second;
    // Each of the six begins anywhere in the second, and learns of the delay with its second request. Without a shared
    // delay, five fetchers would send 50. Fetchers that never request robots.txt would send everything.
    // Ten more may be open or about to be sent while the Source or a process stands still, and then come together.
    assert!(most <= 10 + 2 * 6 + 10, "{most} requests came within a second");
}

#[tokio::test]
async fn a_scheduler_that_dies_is_replaced_and_no_document_is_read_again() {
    let spec = SourceSpec::default().resources(600).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let _stages = fleet.start(&["fetcher", "verifier"], "");
    let first = fleet.start(&["scheduler"], "");
    fleet.add(&source.well_known(), &[]);
    fleet.run("submit", &source.well_known(), &[]).exits(0);
    asked_for(&source, 100).await;
    let documents = source.requests().documents;
    let second = fleet.start(&["scheduler"], "");
    first.kill();
    fleet.watch(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    assert_eq!(source.requests().documents, documents, "{}", second.log());
}

#[tokio::test]
async fn a_scheduler_that_slept_through_its_end_is_kept_out_and_gives_up_cleanly() {
    let spec = SourceSpec::default().resources(600).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let _stages = fleet.start(&["fetcher", "verifier"], "");
    let sleeper = fleet.start(&["scheduler"], "");
    fleet.add(&source.well_known(), &[]);
    fleet.run("submit", &source.well_known(), &[]).exits(0);
    asked_for(&source, 100).await;
    sleeper.signal("STOP");
    let _second = fleet.start(&["scheduler"], "");
    fleet.watch(&source.well_known()).await.exits(0);
    sleeper.signal("CONT");
    assert_eq!(fleet.destination().present(), truth(&source));
    // It continues as an ordinary member, and stops like one.
    fleet.harvest(&source.well_known()).await.exits(0);
    assert_eq!(sleeper.terminate().await, Some(0));
    assert_eq!(fleet.destination().present(), truth(&source));
}

#[tokio::test]
async fn a_run_waits_goes_on_and_ends_as_the_operator_wants() {
    let spec = SourceSpec::default().resources(600).latency(Duration::from_millis(20));
    let source = source(spec).await;
    let fleet = fleet().await;
    let url = source.well_known();
    let _all = fleet.start(&[], "");
    fleet.add(&url, &[]);
    // It cannot end before the operator's word is there.
    source.allow(50);
    fleet.run("submit", &url, &[]).exits(0);
    asked_for(&source, 50).await;
    fleet.run("pause", &url, &[]).exits(0);
    source.allow_all();
    until_state(&fleet, "paused").await;
    let asked = source.requests().resources;
    assert!(asked < 600, "{asked}");
    source.allow(50);
    fleet.run("resume", &url, &[]).exits(0);
    asked_for(&source, asked + 50).await;
    fleet.run("cancel", &url, &[]).exits(0);
    source.allow_all();
    until_state(&fleet, "cancelled").await;
    assert!(source.requests().resources < 600);

    // The next run finds the remaining work again.
    fleet.harvest(&url).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
}

async fn until_state(fleet: &Fleet, state: &str) {
    let is_so = || fleet.run("ls", "--json", &[]).exits(0).json()["state"] == state;
    until(format!("the run is {state}"), is_so).await;
}
