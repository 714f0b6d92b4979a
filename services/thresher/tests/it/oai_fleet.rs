//! A fleet harvests repositories of OAI-PMH: the same as on a laptop, as politely, whichever process dies.

use std::collections::BTreeSet;
use std::time::Duration;

use simulated_source::{Changes, Failure, RepositoryFault, RepositorySpec, SimulatedRepository};
use testkit::waiting::until;

use crate::common::{Destination, Fleet, Service};
use crate::fleet::{ALL, fleet, listed};

const DAY: u32 = 86_400;

async fn repository(spec: RepositorySpec) -> SimulatedRepository {
    SimulatedRepository::start(spec).await.expect("a free port on loopback")
}

fn all_of(fleet: &Fleet) -> Vec<Service> {
    ALL.iter().map(|service| fleet.start(&[service], "")).collect()
}

/// The URIs of the live records.
fn live(repository: &SimulatedRepository) -> BTreeSet<String> {
    let base = repository.base_url();
    let uri = |identifier: &str| {
        let identifier = identifier.replace(':', "%3A");
        format!("{base}?verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc")
    };
    repository.expected().iter().filter(|one| !one.deleted).map(|one| uri(&one.identifier)).collect()
}

/// The URIs of the resources that the fleet holds.
fn held(fleet: &Fleet) -> BTreeSet<String> {
    fleet.destination().present().into_keys().collect()
}

#[tokio::test]
async fn a_fleet_harvests_a_repository_as_a_laptop_does_and_follows_its_changes() {
    let repository = repository(RepositorySpec::default().records(300).page_size(50).deleted_every(10)).await;
    let base = repository.base_url();
    let options = ["--metadata-prefix", "oai_dc", "--set", "group:0", "--set", "group:1", "--set", "group:2"];
    let contact = ["--contact", "harvest@example.org"];
    let fleet = fleet().await;
    let laptop = Destination::directory();
    let _services = all_of(&fleet);
    fleet.add(&base, &[&options[..], &contact].concat());
    fleet.harvest(&base).await.exits(0);
    let log = repository.requests();
    assert_eq!(log.count("GetRecord"), 0, "no request for each record: {:?}", log.by_verb);
    assert_eq!(log.by_contact.keys().collect::<Vec<_>>(), ["harvest@example.org"], "{:?}", log.by_contact);
    laptop.sync_with(&base, &options).exits(0);
    assert_eq!(listed(&fleet.destination()), listed(&laptop));

    repository.advance(2 * DAY);
    repository.change(Changes { create: 4, update: 8, delete: 4 });
    fleet.harvest(&base).await.exits(0);
    laptop.sync_with(&base, &options).exits(0);
    assert_eq!(listed(&fleet.destination()), listed(&laptop));
    repository.reset_requests();
    fleet.harvest(&base).await.exits(0);
    assert_eq!(repository.requests().count("ListRecords"), 3, "one request for each set");
}

#[tokio::test]
async fn a_scheduler_that_dies_in_a_list_is_replaced_by_one_that_goes_on_with_its_token() {
    let spec = RepositorySpec::default().page_size(20).latency(Duration::from_millis(20));
    let repository = repository(spec).await;
    let base = repository.base_url();
    let fleet = fleet().await;
    let first = fleet.start(&["scheduler"], "");
    fleet.add(&base, &[]);
    fleet.run("submit", &base, &[]).exits(0);
    until("some pages are read", || repository.requests().count("ListRecords") >= 15).await;
    let second = fleet.start(&["scheduler"], "");
    first.kill();
    fleet.watch(&base).await.exits(0);
    assert_eq!(held(&fleet), live(&repository));
    let pages = repository.requests().count("ListRecords");
    assert!(pages <= 50 + 5, "{pages} requests for 50 pages and one kill: {}", second.log());
}

#[tokio::test]
async fn pages_take_their_places_at_an_origin_whichever_scheduler_asks_for_them() {
    let spec = RepositorySpec::default().page_size(10).latency(Duration::from_millis(20));
    let repository = repository(spec).await;
    let fleet = fleet().await;
    let _schedulers: Vec<_> = (0..2).map(|_| fleet.start(&["scheduler"], "")).collect();
    // Four Sources at one origin.
    let lists: Vec<String> = (0..4)
        .map(|n| format!("{}?verb=ListRecords&metadataPrefix=oai_dc&set=group:{n}", repository.base_url()))
        .collect();
    for list in &lists {
        fleet.add(list, &["--concurrency", "3"]);
        fleet.run("submit", list, &[]).exits(0);
    }
    for list in &lists {
        fleet.watch(list).await.exits(0);
    }
    assert_eq!(held(&fleet), live(&repository));
    let log = repository.requests();
    assert!(log.count("ListRecords") >= 100, "{:?}", log.by_verb);
    assert!(log.max_open <= 3, "{} requests were open at a time", log.max_open);
}

#[tokio::test]
async fn forty_endpoints_on_one_host_are_asked_one_after_the_other_at_its_rate() {
    let repository = repository(RepositorySpec::default().records(80).sets(40).page_size(10)).await;
    let fleet = fleet().await;
    let _schedulers: Vec<_> = (0..2).map(|_| fleet.start(&["scheduler"], "")).collect();
    let lists: Vec<String> = (0..40)
        .map(|n| format!("{}?verb=ListRecords&metadataPrefix=oai_dc&set=group:{n}", repository.base_url()))
        .collect();
    for list in &lists {
        fleet.add(list, &["--concurrency", "1", "--max-rate", "20"]);
        fleet.run("submit", list, &[]).exits(0);
    }
    for list in &lists {
        fleet.watch(list).await.exits(0);
    }
    assert_eq!(held(&fleet), live(&repository));
    let log = repository.requests();
    assert!(log.count("ListRecords") >= 40, "{:?}", log.by_verb);
    assert_eq!(log.max_open, 1, "two requests were open at a time");
    // Ten are sent within 450 ms, and arrive within less if the first one is late. Without a rate, it is a tenth of that.
    assert!(log.shortest_ten >= Some(Duration::from_millis(250)), "{:?}", log.shortest_ten);
}

#[tokio::test]
async fn a_repository_that_asks_for_patience_is_left_alone_for_that_time() {
    let repository = repository(RepositorySpec::default().page_size(50)).await;
    let base = repository.base_url();
    let fleet = fleet().await;
    let _scheduler = fleet.start(&["scheduler"], "");
    fleet.add(&base, &[]);
    repository.fail_next(Failure::Status(503, 2), 1);
    fleet.harvest(&base).await.exits(0);
    let log = repository.requests();
    assert_eq!((log.by_status.get(&503), log.impatient), (Some(&1), 0), "{log:?}");
    assert_eq!(held(&fleet), live(&repository));
}

#[tokio::test]
async fn robots_txt_and_the_address_guard_bind_requests_for_pages_too() {
    let repository = repository(RepositorySpec::default().records(20)).await;
    repository.set_fault(RepositoryFault::Disallowed);
    let base = repository.base_url();
    let fleet_that_obeys = fleet().await;
    let _scheduler = fleet_that_obeys.start(&["scheduler"], "");
    fleet_that_obeys.add(&base, &["--robots", "obey"]);
    fleet_that_obeys.run("submit", &base, &[]).exits(0);
    until("robots.txt is read", || repository.requests().count("/robots.txt") >= 1).await;
    let run = fleet_that_obeys.watch(&base).await;
    assert_ne!(run.exit, Some(0), "{run}");
    assert!(run.to_string().contains("robots.txt"), "it says why: {run}");
    assert_eq!(repository.requests().count("Identify"), 0);

    repository.reset_requests();
    let fleet_of_public_addresses = fleet().await;
    let _scheduler = fleet_of_public_addresses.start_asking(&["scheduler"], "allow_networks: []", "");
    fleet_of_public_addresses.add(&base, &[]);
    let run = fleet_of_public_addresses.harvest(&base).await;
    assert_ne!(run.exit, Some(0), "{run}");
    assert!(repository.requests().by_verb.is_empty(), "{:?}", repository.requests().by_verb);
}

#[tokio::test]
async fn windows_of_one_list_keep_within_the_limit_of_the_origin_and_outlive_their_scheduler() {
    let spec = RepositorySpec::default().records(2_000).page_size(10).seconds_apart(3_600);
    let repository = repository(spec.latency(Duration::from_millis(30))).await;
    let base = repository.base_url();
    let fleet = fleet().await;
    let first = fleet.start(&["scheduler"], "");
    fleet.add(&base, &["--concurrency", "3"]);
    // Those after these wait for each other, and it cannot end before the kill.
    repository.allow("ListRecords", 60);
    fleet.run("submit", &base, &[]).exits(0);
    until("some pages are read, by several windows", || {
        let log = repository.requests();
        log.count("ListRecords") >= 60 && log.max_open >= 2
    })
    .await;
    let open = repository.requests().max_open;
    assert!((2..=3).contains(&open), "windows are read at the same time, within the limit: {open}");
    let second = fleet.start(&["scheduler"], "");
    first.kill();
    repository.allow_all();
    fleet.watch(&base).await.exits(0);
    assert_eq!(held(&fleet), live(&repository));
    let log = repository.requests();
    let lists = log.count("ListRecords") + log.count("ListIdentifiers");
    assert!(lists <= 200 + 60, "{:?} for 200 pages and one kill: {}", log.by_verb, second.log());
    assert!(log.max_open <= 3, "within the limit after the kill too: {}", log.max_open);
}
