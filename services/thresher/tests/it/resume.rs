//! `kill -9` at any moment, then the same command: nothing is lost, and almost nothing is repeated.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Destination, Process, Run, requests_at, source};
use simulated_source::{Changes, Fault, SimulatedSource, Size, SourceSpec};
use testkit::servers::Venv;
use testkit::waiting::until;

const ROBOTS: &str = "/robots.txt";

fn small(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Fixed(300))
}

fn start(source: &SimulatedSource, copy: &Destination) -> Process {
    Process::start(&mut copy.command("sync", &[&source.well_known()]))
}

/// Whatever the moment of the kill, no file is half written.
#[track_caller]
fn every_file_is_whole(source: &SimulatedSource, copy: &Destination) {
    if !std::fs::exists(&copy.into).unwrap() {
        return;
    }
    let bodies: BTreeMap<Vec<u8>, String> =
        source.expected().filter_map(|now| Some((source.body(&now.uri)?, now.uri))).collect();
    for (name, bytes) in copy.view() {
        let uri = bodies.get(&bytes).unwrap_or_else(|| panic!("{name} is no resource of the Source"));
        assert!(uri.ends_with(name.rsplit('/').next().unwrap()), "{name} has the bytes of {uri}");
    }
}

/// Kills a harvest when this many more requests for resources have come. It is given few more, so it cannot end before.
async fn killed_in(source: &SimulatedSource, copy: &Destination, requests: u64) {
    let enough = source.requests().resources + requests;
    source.allow(requests + 10);
    start(source, copy).kill_when(|| source.requests().resources >= enough).await;
    source.allow_all();
}

/// Kills a harvest after this many requests for resources, runs the same command again, and counts repeated requests.
async fn killed_after(requests: u64, resources: u64) {
    let source = source(small(resources).entries_per_list(resources / 5)).await;
    let copy = Destination::directory();
    killed_in(&source, &copy, requests).await;
    every_file_is_whole(&source, &copy);
    let documents = source.requests().documents;
    assert_eq!(requests_at(&source, ROBOTS), 1);

    let run = copy.sync(&source.well_known()).exits(0);
    assert_eq!(run.json()["in_sync"], true, "{run}");
    copy.mirrors(&source);
    let log = source.requests();
    assert_eq!(requests_at(&source, ROBOTS), 2, "politeness is asked for by every process");
    assert_eq!(log.documents, documents + 1, "the plan was made, no other document is read again");
    let most = resources + resources / 20;
    assert!(
        log.resources < most,
        "{} requests for {resources} resources, less than {most} are allowed",
        log.resources
    );
    assert_eq!(run.count("stored"), resources, "the counts are those of the whole run: {run}");

    source.reset_requests();
    copy.sync(&source.well_known()).exits(0);
    assert_eq!(source.requests().resources, 0, "and a further run fetches nothing");
}

#[tokio::test]
async fn killed_after_a_fifth_of_the_resources() {
    killed_after(400, 2_000).await;
}

#[tokio::test]
async fn killed_half_way() {
    killed_after(2_500, 5_000).await;
}

#[tokio::test]
async fn killed_shortly_before_the_end() {
    killed_after(1_800, 2_000).await;
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn killed_at_a_random_moment_of_twenty_thousand_resources() {
    // The moment differs from run to run. A failure of the test names it.
    let moment = u64::from(std::process::id()) * 7_919 % 19_000 + 500;
    eprintln!("killed after {moment} requests");
    killed_after(moment, 20_000).await;
}

#[tokio::test]
async fn killed_while_the_lists_are_read() {
    let source = source(small(800).entries_per_list(100)).await;
    let copy = Destination::directory();
    let part = |number: u64| source.resource_list().replace(".xml", &format!("-{number}.xml"));
    // It waits for the fifth of eight parts when it is killed.
    source.set_fault(part(5), Fault::Slow(Duration::from_secs(600)));
    start(&source, &copy).kill_when(|| requests_at(&source, &part(5)) > 0).await;
    assert_eq!(source.requests().resources, 0, "it was killed while it made its plan");
    source.clear_faults();

    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
    for number in 1..=4 {
        assert_eq!(requests_at(&source, &part(number)), 1, "part {number} was read, it is not read again");
    }
    assert_eq!(source.requests().resources, 800);
}

#[tokio::test]
async fn killed_before_the_source_has_answered() {
    let source = source(small(50)).await;
    let copy = Destination::directory();
    source.set_fault(source.well_known(), Fault::Slow(Duration::from_secs(600)));
    start(&source, &copy).kill_when(|| source.requests().documents > 0).await;
    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn killed_again_and_again_it_still_comes_to_its_end() {
    let source = source(small(600)).await;
    let copy = Destination::directory();
    for _ in 0..5 {
        killed_in(&source, &copy, 100).await;
        every_file_is_whole(&source, &copy);
    }
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn killed_while_it_follows_changes() {
    let source = source(small(600)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    source.change(Changes { create: 100, update: 200, delete: 50 });
    source.reset_requests();
    killed_in(&source, &copy, 100).await;
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
    assert!(source.requests().resources < 400, "{:?} for 300 changes", source.requests().resources);
}

#[tokio::test]
async fn what_changed_after_the_kill_is_followed_too() {
    let source = source(small(600)).await;
    let copy = Destination::directory();
    killed_in(&source, &copy, 300).await;
    // The pending records declare bytes that the Source no longer has.
    source.change(Changes { create: 20, update: 100, delete: 30 });
    let resumed = copy.sync(&source.well_known());
    assert!(matches!(resumed.exit, Some(0 | 1)), "{resumed}");
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_harvest_can_be_read_while_it_is_under_way_and_as_a_kill_has_left_it() {
    let source = source(small(400).latency(Duration::from_millis(5))).await;
    let copy = Destination::directory();
    source.allow(100);
    let mut running = start(&source, &copy);
    assert!(running.until(|| source.requests().resources >= 100).await);
    let under_way = copy.ls();
    source.allow(110);
    running.kill_when(|| source.requests().resources >= 200).await;
    source.allow_all();
    assert_eq!(under_way.len(), 400, "all that is planned is listed, held or pending");
    let left = copy.ls();
    let states = |state: &str| left.values().filter(|held| held.state == state).count();
    assert!(states("present") > 0 && states("pending") > 0, "some of it is held, some is not");
    assert_eq!(copy.ls(), left, "reading changes nothing");
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_second_harvest_of_the_same_destination_does_no_harm_to_the_first() {
    let source = source(small(400).latency(Duration::from_millis(5))).await;
    let copy = Destination::directory();
    source.allow(110);
    let mut first = start(&source, &copy);
    assert!(first.until(|| source.requests().resources >= 100).await);
    source.allow_all();
    // One of the two wins, or the second is refused. In the end a single command finds everything in sync.
    copy.sync(&source.well_known());
    first.end();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn an_interrupt_from_the_keyboard_stops_in_good_order() {
    let source = source(small(400).latency(Duration::from_millis(5))).await;
    let copy = Destination::directory();
    // Python can send a signal, and other tests need it anyway. It waits for the process ID, so it is already running
    // when the harvest starts.
    let python = Venv::peers().unwrap().program("python");
    let interrupt = "import os, signal; os.kill(int(input()), signal.SIGINT)";
    let mut interrupting =
        Command::new(python).args(["-c", interrupt]).stdin(Stdio::piped()).spawn().unwrap();
    let mut command = copy.command("sync", &[&source.well_known()]);
    // It cannot end before the signal comes.
    source.allow(110);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("100 requests for resources come", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        source.requests().resources >= 100
    })
    .await;
    writeln!(interrupting.stdin.take().unwrap(), "{}", child.id()).unwrap();
    assert!(interrupting.wait().unwrap().success());
    source.allow_all();
    let stopped = Run::ended(&command, &child.wait_with_output().unwrap()).exits(3);
    assert!(stopped.complaint().contains("again"), "{stopped}");
    every_file_is_whole(&source, &copy);
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
    let requests = source.requests().resources;
    assert!(requests < 400 + 80, "{requests} requests: no more than was under way is asked for twice");
}
