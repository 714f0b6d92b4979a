//! Sources that do not answer, or answer slowly: their runs wait, and take nothing from others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use simulated_source::SourceSpec;
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::found;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Fleet, Run, source, truth};

/// Memory for one small run at a time, and short turns.
const ONE_PLACE: &str =
    "scheduler: {memory_megabytes: 72, cache_megabytes: 64, first_turn_seconds: 1, probe_timeout_seconds: 1}";

async fn fleet() -> Fleet {
    Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await)
}

/// The last run of a Source, as `run ls --json` prints it.
fn run_of(fleet: &Fleet, source: &str) -> Value {
    let runs = Run::of(fleet.command("run").args(["ls", "--json"])).exits(0);
    let id = model::SourceId::of_entry(&source.parse().expect("a URL"));
    let mut lines = runs.json_lines().into_iter();
    lines.find(|line| line["source"] == id.as_str()).unwrap_or_else(|| panic!("no run of {source}: {runs}"))
}

/// A server that accepts connections and never answers, until it is awake: then it passes them on to `port`.
async fn sleeping(port: u16) -> (u16, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let is_awake = Arc::new(AtomicBool::new(false));
    let awake = Arc::clone(&is_awake);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut incoming, _)) = listener.accept().await {
            if !awake.load(Ordering::SeqCst) {
                held.push(incoming);
                continue;
            }
            tokio::spawn(async move {
                let mut outgoing = TcpStream::connect(("127.0.0.1", port)).await?;
                copy_bidirectional(&mut incoming, &mut outgoing).await
            });
        }
    });
    (address.port(), is_awake)
}

#[tokio::test]
async fn a_source_that_never_answers_takes_no_place_and_is_harvested_once_it_does() {
    let healthy = source(SourceSpec::default().resources(20)).await;
    let silent = source(SourceSpec::default().resources(20)).await;
    let entry: url::Url = silent.well_known().parse().expect("a URL");
    let (port, is_awake) = sleeping(entry.port().expect("a port")).await;
    let mut silent_entry = entry.clone();
    silent_entry.set_port(Some(port)).expect("a URL with a host");
    let fleet = fleet().await;
    let _all = fleet.start(&[], ONE_PLACE);
    fleet.add(silent_entry.as_str(), &[]);
    fleet.run("submit", silent_entry.as_str(), &[]).exits(0);
    fleet.add(&healthy.well_known(), &[]);
    fleet.harvest(&healthy.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&healthy));

    // It waits for some time only, so it is looked at once.
    let waiting = found("the run waits", async || {
        let run = run_of(&fleet, silent_entry.as_str());
        (run["state"] == "waiting").then_some(run)
    })
    .await;
    assert_eq!(waiting["waiting"]["reason"], "unreachable", "{waiting}");
    assert!(waiting["message"].as_str().is_some_and(|why| why.contains("did not answer")), "{waiting}");
    assert!(waiting["waiting"]["until"].as_str() > waiting["waiting"]["since"].as_str(), "{waiting}");

    is_awake.store(true, Ordering::SeqCst);
    fleet.run("resume", silent_entry.as_str(), &[]).exits(0);
    fleet.watch(silent_entry.as_str()).await.exits(0);
    let held = fleet.destination().present();
    assert!(truth(&silent).iter().all(|(uri, body)| held.get(uri) == Some(body)), "all of it is stored");
}

#[tokio::test]
async fn a_waiting_run_is_cancelled_at_once() {
    let (port, _) = sleeping(0).await;
    let entry = format!("http://127.0.0.1:{port}/");
    let fleet = fleet().await;
    let _all = fleet.start(&[], ONE_PLACE);
    fleet.add(&entry, &[]);
    fleet.run("submit", &entry, &[]).exits(0);
    found("the run waits", async || (run_of(&fleet, &entry)["state"] == "waiting").then_some(())).await;
    fleet.run("cancel", &entry, &[]).exits(0);
    assert_eq!(run_of(&fleet, &entry)["state"], "cancelled");
}

#[tokio::test]
async fn a_slow_source_leaves_its_place_to_others_and_comes_to_its_end() {
    let slow = source(SourceSpec::default().resources(30).latency(Duration::from_millis(300))).await;
    let quick = source(SourceSpec::default().resources(20)).await;
    let fleet = fleet().await;
    let _all = fleet.start(&[], ONE_PLACE);
    fleet.add(&slow.well_known(), &["--concurrency", "1"]);
    fleet.add(&quick.well_known(), &[]);
    fleet.run("submit", &slow.well_known(), &[]).exits(0);
    found("it has begun", async || (run_of(&fleet, &slow.well_known())["state"] == "running").then_some(()))
        .await;
    fleet.harvest(&quick.well_known()).await.exits(0);
    fleet.watch(&slow.well_known()).await.exits(0);
    // By the scheduler's clock: a command may be told of an end much later.
    let [quick_end, slow_end] = [&quick, &slow].map(|source| {
        let end = run_of(&fleet, &source.well_known())["finished_at"].clone();
        end.as_str().expect("it has ended").parse::<jiff::Timestamp>().expect("a time")
    });
    assert!(quick_end < slow_end, "the quick one did not wait for it: {quick_end}, {slow_end}");
    let held = fleet.destination().present();
    assert!(truth(&slow).iter().all(|(uri, body)| held.get(uri) == Some(body)), "all of it is stored");
}
