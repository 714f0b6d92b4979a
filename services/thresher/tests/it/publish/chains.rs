//! Source, copy, publication, copy of that: by each way that a publication offers, through kills of all that take part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use simulated_source::{ChangeKind, Changes, Fault, SimulatedSource, Size, SourceSpec};
use testkit::relay::Relay;
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::until;

use super::{Files, Served, original, originals};
use crate::common::api::Api;
use crate::common::{Destination, Fleet, Process, requests_at, source};

/// What is not compared in the lines of two copies: each of these is of the copy itself.
const OF_EACH_COPY: [&str; 4] = [
    // It is at another place. The one of the original is compared instead.
    "uri",
    // A copy of a copy is told when the first copy had it.
    "change_time",
    "stored_at",
    "location",
];
const CHANGES: Changes = Changes { create: 4, update: 6, delete: 3 };

/// A way to learn what is published.
struct Way {
    /// Options of the publisher.
    publish: &'static [&'static str],
    /// Options of the reader.
    sync: &'static [&'static str],
    /// The mode of the reader's later runs.
    mode: &'static str,
    /// In the path of what brings the bytes. The reader is killed while it waits for it.
    brings: &'static str,
    /// In no path of the reader's later runs.
    avoids: &'static [&'static str],
    /// Whether each round has a new reader. It never held what was deleted before.
    is_new: bool,
    /// How many publications, one behind the other.
    hops: usize,
}

const LISTS: Way = Way {
    publish: &[],
    // A list tells a deletion by omission.
    sync: &["--mode", "baseline", "--absent", "delete", "--max-deletes", "100%"],
    mode: "baseline",
    brings: "/resources/",
    avoids: &["dump"],
    is_new: false,
    hops: 2,
};
const DUMPS: Way = Way {
    publish: &["--dumps"],
    // So does a dump.
    sync: &["--prefer", "dump", "--mode", "baseline", "--absent", "delete", "--max-deletes", "100%"],
    mode: "baseline",
    brings: "/resourcedump/",
    avoids: &["/resources/", "/changedump/"],
    is_new: false,
    hops: 1,
};
const CHANGE_LISTS: Way = Way {
    publish: &[],
    sync: &[],
    mode: "incremental",
    brings: "/resources/",
    avoids: &["/resourcelist", "dump"],
    is_new: false,
    hops: 1,
};
const CHANGE_DUMPS: Way = Way {
    publish: &["--dumps", "--close-after", "0s"],
    sync: &["--prefer", "dump"],
    mode: "incremental",
    brings: "/changedump/",
    avoids: &["/resources/", "/resourcelist", "/resourcedump/"],
    is_new: false,
    hops: 1,
};

/// A publication behind a relay, which lets requests wait.
struct Hop {
    files: Files,
    relay: Relay,
}

impl Hop {
    fn new() -> Self {
        let mut files = Files::start();
        let relay = Relay::start().unwrap();
        relay.lead_to(files.base.trim_end_matches('/'));
        files.base = format!("{}/", relay.url());
        Self { files, relay }
    }
}

/// How many files are below a path.
fn files_below(path: &Path) -> usize {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| files_below(&entry.unwrap().path())).sum(),
        Err(_) => usize::from(path.is_file()),
    }
}

/// A sync from the Source is killed while it waits for a resource, and repeated.
async fn sync_killed(source: &SimulatedSource, copy: &Destination, waits_for: u64) {
    let uri = source.resource_uri(waits_for);
    let asked = requests_at(source, &uri);
    source.set_fault(waits_for, Fault::Slow(Duration::from_secs(600)));
    let sync = Process::start(&mut copy.command("sync", &[&source.well_known()]));
    sync.kill_when(|| requests_at(source, &uri) > asked).await;
    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
}

/// Changes the Source. Returns a resource that was updated.
fn changed(source: &SimulatedSource) -> u64 {
    let changes = source.change(CHANGES);
    changes.iter().find(|change| change.kind == ChangeKind::Updated).expect("an update").index
}

/// A line of `ls --json` by the URI of its original, without what is of the copy itself. The links that copies are told
/// by (`via`) are apart.
fn lines(copy: &Destination, hops: &[&str]) -> BTreeMap<String, (Value, Option<String>)> {
    let line = |mut line: Value| {
        let uri = original(line["uri"].as_str().unwrap().to_owned(), hops);
        let fields = line.as_object_mut().unwrap();
        OF_EACH_COPY.iter().for_each(|name| drop(fields.remove(*name)));
        let links = fields.remove("links");
        let mut links = links.and_then(|links| links.as_array().cloned()).unwrap_or_default();
        // The document that gave it is the copy's.
        links.iter_mut().for_each(|link| drop(link.as_object_mut().unwrap().remove("document")));
        let via = links.iter().find(|link| link["rel"] == "via").map(|link| link["href"].clone());
        links.retain(|link| link["rel"] != "via");
        fields.insert("links".to_owned(), json!(links));
        (uri, (line, via.and_then(|via| via.as_str().map(str::to_owned))))
    };
    copy.listed().into_iter().map(line).collect()
}

/// A copy has the same lines as the first one, and each resource names the Source that had it first. A new copy has
/// those of what is there alone.
#[track_caller]
fn same_lines(first: &Destination, copy: &Destination, hops: &[&str], is_new: bool) {
    let mut expected = lines(first, &[]);
    expected.retain(|_, (line, _)| !is_new || line["state"] == "present");
    let mut found = lines(copy, hops);
    for (uri, (line, via)) in &mut found {
        if line["state"] == "present" {
            assert_eq!(via.take().as_ref(), Some(uri), "the first Source");
        }
        // The one of a deletion says where it was, too.
        *via = None;
    }
    expected.values_mut().for_each(|(_, via)| assert_eq!(*via, None, "the first copy is of the original"));
    let uris: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let differ = uris.into_iter().map(|uri| (uri, found.get(uri), expected.get(uri)));
    let differ: Vec<_> = differ.filter(|(_, found, expected)| found != expected).collect();
    assert!(differ.is_empty(), "URI, found, expected: {differ:#?}");
}

/// Publishes; killed as soon as a new resource is there, and repeated. Returns whether there was something to kill.
async fn publish_killed(copy: &Destination, files: &Files, options: &[&str]) -> bool {
    let to = files.public().display().to_string();
    let options = [&["--base", &files.base, "--to", &to, "--json"], options].concat();
    let resources = files.public().join("resources");
    let before = files_below(&resources);
    let mut publish = Process::start(&mut copy.command("publish", &options));
    let is_killed = publish.until(|| files_below(&resources) > before).await;
    drop(publish);
    copy.run("publish", &options).exits(0);
    is_killed
}

async fn goes_through(way: Way) {
    let source = source(SourceSpec::default().resources(40).size(Size::Range(0, 50_000))).await;
    let copies: Vec<_> = (0..=way.hops).map(|_| Destination::directory()).collect();
    let hops: Vec<_> = (0..way.hops).map(|_| Hop::new()).collect();
    let bases: Vec<&str> = hops.iter().map(|hop| hop.files.base.as_str()).collect();
    let mut kills = 0;
    for round in 0..4 {
        let waits_for = if round == 0 { 7 } else { changed(&source) };
        sync_killed(&source, &copies[0], waits_for).await;
        for (at, Hop { files, relay }) in hops.iter().enumerate() {
            kills += usize::from(publish_killed(&copies[at], files, way.publish).await);
            let new = Destination::directory();
            let copy = if way.is_new { &new } else { &copies[at + 1] };
            let (held, passed) = (relay.held(), relay.passed().len());
            relay.hold(Some(way.brings).filter(|_| round > 0));
            if round > 0 {
                let words = [&[files.base.as_str()], way.sync].concat();
                let sync = Process::start(&mut copy.command("sync", &words));
                sync.kill_when(|| relay.held() > held).await;
                relay.hold(None);
            }
            let run = copy.sync_with(&files.base, way.sync).exits(0);
            if round > 0 {
                assert_eq!(run.json()["mode"], way.mode, "{run}");
                let asked = relay.passed().split_off(passed);
                let strays = asked.iter().filter(|one| way.avoids.iter().any(|part| one.path.contains(part)));
                let strays: Vec<_> = strays.map(|one| &one.path).collect();
                assert!(strays.is_empty(), "this is another way: {strays:?}");
            }
            same_lines(&copies[0], copy, &bases[..=at], way.is_new);
        }
    }
    assert!(kills > 0, "each publication had ended before it was killed");
}

#[tokio::test]
async fn acc_1_by_resource_lists_two_copies_behind_each_other_have_the_same_lines() {
    goes_through(LISTS).await;
}

#[tokio::test]
async fn acc_1_by_resource_dumps_a_copy_has_the_same_lines() {
    goes_through(DUMPS).await;
}

#[tokio::test]
async fn acc_1_by_change_lists_a_copy_has_the_same_lines() {
    goes_through(CHANGE_LISTS).await;
}

#[tokio::test]
async fn acc_1_by_change_dumps_a_copy_has_the_same_lines() {
    goes_through(CHANGE_DUMPS).await;
}

/// By notifications: a fleet subscribes to the publisher's own hub.
#[tokio::test]
async fn acc_1_by_notifications_a_copy_has_the_same_lines() {
    const OWN_HUB: [&str; 3] = ["--own-hub", "--allow-address", "127.0.0.0/8"];
    let source = source(SourceSpec::default().resources(20)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let mut served = Served::with(&copy, &OWN_HUB);
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let relay = Relay::start().unwrap();
    let start = || fleet.start(&[], &fleet.push(&relay.url(), ""));
    let mut all = start();
    relay.lead_to(Api::of(&all).await.base);
    fleet.add(&served.well_known(), &[]);
    fleet.harvest(&served.well_known()).await.exits(0);
    let passed = |method: Method, status: u16| {
        relay.passed().iter().filter(|one| one.method == method && one.status == status).count()
    };
    until("the hub has verified the subscription", || passed(Method::GET, 200) > 0).await;
    for _ in 0..2 {
        let told = passed(Method::POST, 202);
        // The fleet is killed while it waits for a resource that it was told of.
        let held = served.relay.held();
        served.relay.hold(Some("/resources/"));
        let updated = changed(&source);
        sync_killed(&source, &copy, updated).await;
        // It may be in the middle of the publication.
        served.restart_with(&copy, &OWN_HUB);
        until("the fleet is told", || passed(Method::POST, 202) > told).await;
        until("the fleet asks for a resource", || served.relay.held() > held).await;
        all.kill();
        served.relay.hold(None);
        all = start();
        relay.lead_to(Api::of(&all).await.base);
        let expected = originals(&copy, &[]);
        until("the fleet holds what was published", || {
            originals(&fleet.destination(), &[&served.base]) == expected
        })
        .await;
        same_lines(&copy, &fleet.destination(), &[&served.base], false);
    }
}
