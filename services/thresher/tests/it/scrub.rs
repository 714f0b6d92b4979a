//! Scrubs: damage in the store is named, never served, and repaired.

use std::path::{Path, PathBuf};

use crate::common::{Destination, Inside, Package, Site, package, source, urlset};
use catalog::Batch;
use model::{Location, Phase, Subject};
use object_store::ObjectStoreExt as _;
use simulated_source::{SimulatedSource, Size, SourceSpec};
use store::{Key, Store, StoreOptions};
use testkit::scripted::Reply;
use testkit::servers::S3Fixture;

const AT: &str = "2026-01-01T00:00:00Z";
const DUMP: &str = "capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"";

/// Some bodies are too large for a pack.
fn mixed(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(0, 500_000))
}

/// A resource with an object of its own, the next one of that kind, and one in a pack.
async fn three(inside: &Inside, source: &SimulatedSource) -> [String; 3] {
    let mut objects = Vec::new();
    let mut packed = Vec::new();
    for uri in source.expected().map(|now| now.uri) {
        match inside.location(&uri).await {
            Location::Object { .. } => objects.push(uri),
            _ => packed.push(uri),
        }
    }
    [objects.remove(0), objects.remove(0), packed.remove(0)]
}

fn set_aside(copy: &Destination) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(Path::new(&copy.into).join(".thresher/damaged"));
    let folders = folders.into_iter().flatten().map(|folder| folder.unwrap().path());
    folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path()).collect()
}

/// A dump of one package, whose resources also have URLs of their own. Returns its URI, and theirs.
fn dump(site: &Site) -> (String, Vec<String>) {
    let mut held = Package::of_resources(AT);
    let mut uris = Vec::new();
    for n in 0..4 {
        let body = format!("{n}").repeat(5_000);
        let uri = site.serve(&format!("/{n}"), body.as_str());
        held = if n % 2 == 0 { held.deflated() } else { held }.holds(&uri, body);
        uris.push(uri);
    }
    let bytes = held.zip();
    let entry = package(&site.uri("/1.zip"), &bytes, "");
    site.reply("/1.zip", Reply::ok(bytes));
    (site.serve("/dump.xml", urlset(DUMP, &[entry])), uris)
}

#[tokio::test]
async fn a_flipped_byte_a_lost_object_and_a_cut_package_are_named_and_mended() {
    let source = source(mixed(30)).await;
    let site = Site::start().await;
    let copy = Destination::directory();
    let (dump, members) = dump(&site);
    copy.sync_with(&source.url(), &["--view", "none"]).exits(0);
    copy.sync_with(&dump, &["--view", "none"]).exits(0);
    let clean = copy.run("scrub", &["--json"]).exits(0).json();
    assert_eq!((&clean["held"], &clean["resources"]), (&34.into(), &34.into()));
    assert_eq!((&clean["damaged"], &clean["missing"], &clean["noted"]), (&0.into(), &0.into(), &0.into()));

    let inside = Inside::of(&copy, &source.url()).await;
    let [lost, flipped, member] = three(&inside, &source).await;
    std::fs::remove_file(inside.file(&lost).await).unwrap();
    inside.flip(&flipped).await;
    inside.flip(&member).await;
    inside.close().await;
    let inside = Inside::of(&copy, &dump).await;
    let cut = inside.file(&members[3]).await;
    // Behind the second of four members.
    let end = inside.location(&members[2]).await.span().unwrap().offset + 3;
    inside.close().await;
    std::fs::File::options().write(true).open(&cut).unwrap().set_len(end).unwrap();
    let harmed = [&lost, &flipped, &member, &members[2], &members[3]];

    let found = copy.run("scrub", &["--json"]).exits(1);
    let json = found.json();
    assert_eq!((&json["damaged"], &json["missing"]), (&4.into(), &1.into()), "{found}");
    assert_eq!((&json["noted"], &json["quarantined"], &json["repaired"]), (&5.into(), &1.into(), &0.into()));
    let found = found.says(&harmed.map(|uri| uri.as_str()));
    assert_eq!(found.stderr.lines().count(), 5, "{found}");
    for uri in harmed {
        copy.run("cat", &[uri]).exits(3);
    }
    let listed = copy.run("problems", &["--json", "--reason", "damaged-bytes"]).exits(0).json_lines();
    assert_eq!(listed.len(), 4);
    let damage = listed.iter().find(|line| line["uri"] == *flipped).map(|line| &line["evidence"]["damage"]);
    let damage = damage.unwrap_or_else(|| panic!("{listed:?}"));
    assert_eq!(damage["expected_length"], damage["found"]["length"]);
    assert_ne!(damage["expected_sha256"], damage["found"]["sha256"]);
    let aside = set_aside(&copy);
    let [aside] = &aside[..] else { panic!("{aside:?}") };
    assert!(aside.ends_with(damage["set_aside"].as_str().unwrap()));

    // The quarantined bytes now count as missing.
    let run = copy.run("scrub", &["--repair", "--json"]).exits(0);
    let json = run.json();
    assert_eq!((&json["damaged"], &json["missing"]), (&3.into(), &2.into()), "{run}");
    assert_eq!((&json["repaired"], &json["quarantined"]), (&5.into(), &0.into()), "{run}");
    for uri in [&lost, &flipped, &member] {
        assert_eq!(Some(copy.cat(uri)), source.body(uri));
        assert!(copy.explain(uri).contains("refetched and verified"));
    }
    assert_eq!(copy.cat(&members[3]), b"3".repeat(5_000));
    assert!(copy.run("problems", &["--json"]).exits(0).json_lines().is_empty());
    let clean = copy.run("scrub", &[]).exits(0);
    assert!(clean.stdout.contains("all OK"), "{clean}");
    // Quarantined objects stay until an operator removes them.
    copy.run("gc", &["--retention", "0s"]).exits(0);
    assert_eq!(set_aside(&copy), std::slice::from_ref(aside));
}

#[tokio::test]
async fn what_a_scrub_has_noted_the_next_sync_mends() {
    let source = source(mixed(20)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    let inside = Inside::of(&copy, &source.url()).await;
    let [lost, flipped, member] = three(&inside, &source).await;
    std::fs::remove_file(inside.file(&lost).await).unwrap();
    inside.flip(&flipped).await;
    inside.flip(&member).await;
    inside.close().await;
    let said = copy.run("scrub", &[]).exits(1);
    assert!(said.stdout.contains("2 are damaged, 1 is missing"), "{said}");
    // Damage noted twice is one problem, and one line of its history.
    copy.run("scrub", &[]).exits(1);
    assert_eq!(copy.explain(&lost).matches("problem (missing-bytes)").count(), 1, "{}", copy.explain(&lost));
    let inside = Inside::of(&copy, &source.url()).await;
    let problem = inside.catalog.problem(&Subject::Resource(lost.clone())).await.unwrap().unwrap();
    assert!(problem.repair && problem.first_seen < problem.last_seen, "{problem:?}");
    let problem = inside.catalog.problem(&Subject::Resource(flipped.clone())).await.unwrap().unwrap();
    assert_eq!(problem.reason, model::ProblemReason::MissingBytes);
    assert!(problem.evidence.damage.unwrap().set_aside.is_some(), "where it was put is not forgotten");
    inside.close().await;
    let run = copy.sync(&source.url()).exits(0);
    assert_eq!(run.count("healed"), 3, "{run}");
    copy.mirrors(&source);
    copy.run("scrub", &[]).exits(0);
}

#[tokio::test]
async fn a_harvest_that_is_under_way_is_left_alone_and_what_was_found_is_said() {
    let source = source(mixed(10)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    let inside = Inside::of(&copy, &source.url()).await;
    let uri = source.resource_uri(3);
    inside.flip(&uri).await;
    let run = inside.catalog.last_run().await.unwrap().unwrap();
    let mut batch = Batch::new();
    batch.put_run(&model::RunRecord { phase: Phase::Dispatching, ..run });
    inside.catalog.commit(batch).await.unwrap();
    let said = copy.run("scrub", &["--repair", "--json"]).exits(1).says(&[&uri]);
    let json = said.json();
    assert_eq!((&json["damaged"], &json["noted"], &json["quarantined"]), (&1.into(), &0.into(), &0.into()));
    assert_eq!(json["left"][0]["resources"], 1, "{said}");
    let mut batch = Batch::new();
    batch.put_last_seq(inside.catalog.last_seq().await.unwrap());
    inside.catalog.commit(batch).await.expect("it was not shut out");
    inside.close().await;
}

#[tokio::test]
async fn a_sample_says_what_it_proves_and_can_be_drawn_again() {
    let source = source(SourceSpec::default().resources(300)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    let run = copy.run("scrub", &["--sample", "100", "--json"]).exits(0);
    let json = run.json();
    assert_eq!(
        (&json["held"], &json["resources"], &json["chosen"]),
        (&300.into(), &100.into(), &"sample".into())
    );
    assert!((json["at_most"].as_f64().unwrap() - 0.029_513).abs() < 1e-6, "{run}");
    let seed = json["seed"].to_string();
    let run = copy.run("scrub", &["--sample", "100", "--seed", &seed]).exits(0);
    let proof = format!(
        "so at most 3 % of all resources are damaged or missing, with 95 % confidence (drawn with --seed {seed})"
    );
    assert!(run.stdout.contains(&proof), "{run}");
    // A sample of everything leaves no doubt.
    let all = copy.run("scrub", &["--sample", "1000", "--json"]).exits(0).json();
    assert!(all["at_most"].is_null() && all["resources"] == 300, "{all}");
    let share = copy.run("scrub", &["--daily-share", "100%", "--json"]).exits(0).json();
    assert_eq!((&share["chosen"], &share["resources"]), (&"share".into(), &300.into()));
    copy.run("scrub", &["--daily-share", "0%"]).exits(2);
    copy.run("scrub", &["--sample", "1", "--all"]).exits(2);
}

#[tokio::test]
async fn a_live_sample_finds_what_its_source_gives_in_another_way() {
    let site = Site::start().await;
    let copy = Destination::directory();
    let uris: Vec<String> = (0..5).map(|n| site.serve(&format!("/r{n}"), format!("body {n}"))).collect();
    let entries: Vec<String> = uris.iter().map(|uri| crate::common::resource(uri, "")).collect();
    let list =
        site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    copy.sync(&list).exits(0);
    let same = copy.run("scrub", &["--compare-live", "3", "--json"]).exits(0).json();
    assert_eq!((&same["live"]["asked"], &same["live"]["same"]), (&3.into(), &3.into()));
    site.serve("/r2", "BODY 2");
    site.reply("/r3", Reply::status(410));
    let run = copy.run("scrub", &["--compare-live", "5", "--json"]).exits(1);
    let live = &run.json()["live"];
    assert_eq!(
        (&live["same"], &live["different"], &live["failed"]),
        (&3.into(), &2.into(), &0.into()),
        "{run}"
    );
    run.says(&["/r2: stored ", "/r3: stored ", "sends nothing"]);
}

#[tokio::test]
async fn in_a_bucket_the_owners_part_is_left_unless_it_is_asked_for() {
    let fixture = S3Fixture::get().await;
    let source = source(mixed(12)).await;
    let copy = Destination::s3(&fixture);
    copy.sync(&source.url()).exits(0);
    let variables = fixture.aws_environment().map(|(name, value)| (name.to_owned(), value));
    let store =
        Store::open_with(&copy.into.parse().unwrap(), variables, StoreOptions::default()).await.unwrap();
    let held = copy.listed();
    let large = held.iter().find(|line| line["length"].as_u64() > Some(300_000)).unwrap();
    let key = Key::Bitstream(large["sha256"].as_str().unwrap().parse().unwrap());
    let mut bytes = store.object_store().get(&key.path()).await.unwrap().bytes().await.unwrap().to_vec();
    bytes[7] ^= 1;
    store.object_store().put(&key.path(), bytes.into()).await.unwrap();
    let run = copy.run("scrub", &["--json"]).exits(1);
    assert_eq!((&run.json()["damaged"], &run.json()["noted"]), (&1.into(), &0.into()), "{run}");
    copy.run("scrub", &["--repair"]).exits(2).complains(&["--repair"], &["--exclusive"]);
    let run = copy.run("scrub", &["--repair", "--exclusive", "--json"]).exits(0);
    assert_eq!((&run.json()["quarantined"], &run.json()["repaired"]), (&1.into(), &1.into()), "{run}");
    copy.run("scrub", &["--rate", "50MB"]).exits(0);
    let uri = large["uri"].as_str().unwrap();
    assert_eq!(Some(copy.cat(uri)), source.body(uri));
}
