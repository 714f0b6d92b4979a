//! Published documents under the eyes of our own tools.

use std::collections::BTreeSet;

use publish::{Archive, Policy};
use serde_json::json;
use simulated_source::{Changes, SourceSpec};
use testkit::scripted::{Reply, ScriptedServer};
use testkit::waiting::until;

use super::past::Past;
use super::{Files, Served};
use crate::common::{Destination, Run, source, thresher};

const DAY: i64 = 24;

#[tokio::test]
async fn every_document_is_strictly_right_and_the_report_has_no_finding() {
    let source = source(SourceSpec::default().resources(30)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::start(&copy);
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    let card = reader.run("report", &["--json"]).exits(0).json();
    assert_eq!(card["findings"], json!([]), "{card:#}");
    assert_eq!((&card["fixity"]["digest"], &card["coverage"]["held"]), (&json!(30), &json!(30)));

    // The same documents as files, and those of a second run.
    let files = Files::start();
    files.publish(&copy).exits(0);
    source.change(Changes { create: 1, update: 2, delete: 1 });
    copy.sync(&source.well_known()).exits(0);
    files.publish(&copy).exits(0);
    let public = files.public();
    let lists = std::fs::read_dir(public.join("changelist")).unwrap().map(|entry| entry.unwrap().path());
    let documents = [".well-known/resourcesync", "capabilitylist.xml", "resourcelist.xml", "changelist.xml"];
    let documents: Vec<_> = documents.iter().map(|name| public.join(name)).chain(lists).collect();
    assert_eq!(documents.len(), 5);
    for document in documents {
        let run = Run::of(thresher().args(["inspect", "--strict"]).arg(&document)).exits(0);
        let last = run.json_lines().pop().unwrap();
        assert_eq!(last["quirks"], json!({}), "{}: {run}", document.display());
    }
}

/// Inspects a document strictly. Returns the lines.
#[track_caller]
fn inspected(url: &str) -> Vec<serde_json::Value> {
    let lines = Run::of(thresher().args(["inspect", "--strict", url])).exits(0).json_lines();
    assert_eq!(lines.last().unwrap()["quirks"], json!({}), "{url}");
    lines
}

/// All documents from the Source Description on.
#[track_caller]
fn documents(description: String) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut ahead = vec![description];
    while let Some(url) = ahead.pop().filter(|_| found.len() < 200) {
        if !found.insert(url.clone()) {
            continue;
        }
        for line in inspected(&url) {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let links = line["links"].as_array().into_iter().flatten();
            let contents = links.filter(|link| link["rel"] == "contents").map(|link| text(&link["href"]));
            let named = [text(&line["loc"])].into_iter().chain(contents);
            ahead.extend(named.filter(|url| url.ends_with(".xml") && !url.contains("/resources/")));
        }
    }
    found
}

#[tokio::test]
async fn with_all_options_at_once_every_document_is_strictly_right_and_the_report_has_no_finding() {
    let source = source(SourceSpec::default().resources(12)).await;
    let copy = Destination::directory();
    let url = source.well_known();
    let hub = ScriptedServer::start().await.unwrap();
    hub.always("/hub", Reply::status(202));
    let mut served = Served::idle();
    let base = served.base.clone();
    let policy = Policy::default().archived(Archive::All);
    let past = Past { copy: &copy, url: &url, base: &base, dumps: true, policy };
    // Change Lists of more than 30 days ago leave the index for the Archive.
    for days in [50, 45, 44, 40, 3, 2] {
        copy.sync_with(&url, &["--keep-versions", "9", "--view", "none"]).exits(0);
        past.publish(days * DAY).await;
        source.change(Changes { create: 1, update: 3, delete: 1 });
    }
    copy.sync_with(&url, &["--keep-versions", "9", "--view", "none"]).exits(0);
    let hub = hub.uri("/hub");
    let options =
        ["--dumps", "--archive", "all", "--hub", &hub, "--own-hub", "--set", "low=/000000[0-5][.]bin$"];
    served.restart_with(&copy, &options);
    // What was published before is served meanwhile.
    until("the set by rule is described", || {
        let run = Run::of(thresher().args(["inspect", &served.well_known()])).exits(0);
        run.stdout.contains("sets/low/")
    })
    .await;
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    let card = reader.run("report", &["--json"]).exits(0).json();
    assert_eq!(card["findings"], json!([]), "{card:#}");
    // A change that is told to the hubs, so that the topic is there.
    source.change(Changes { create: 1, update: 3, delete: 1 });
    copy.sync_with(&url, &["--keep-versions", "9", "--view", "none"]).exits(0);
    let held = || copy.present().into_values().collect::<BTreeSet<_>>();
    until("the reader has the changes", || {
        reader.sync(&served.well_known()).exits(0);
        reader.present().into_values().collect::<BTreeSet<_>>() == held()
    })
    .await;
    let topic = format!("{base}notifications.xml");
    inspected(&topic);

    let documents = documents(served.well_known());
    let has = |name: &str| documents.contains(&format!("{base}{name}"));
    for name in [
        "capabilitylist.xml",
        "resourcelist.xml",
        "changelist.xml",
        "resourcedump.xml",
        "changedump.xml",
        "resourcelist-archive.xml",
        "changelist-archive.xml",
        "sets/low/capabilitylist.xml",
        "sets/low/resourcelist.xml",
        "sets/low/changelist.xml",
    ] {
        assert!(has(name), "{name}: {documents:#?}");
    }
    let lists = |folder: &str| documents.iter().filter(|url| url.contains(folder)).count();
    assert!(lists("/changelist/") > 4 && lists("/resourcelist/") > 3, "{documents:#?}");
    assert!(lists("/resourcedump/") > 0 && lists("/changedump/") > 0, "{documents:#?}");
}

#[tokio::test]
async fn what_cannot_be_published_is_said_in_one_line() {
    let source = source(SourceSpec::default().resources(3)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let files = Files::start();
    let to = files.public().display().to_string();
    let publish = |options: &[&str]| copy.run("publish", options);
    publish(&["--base", "ftp://e.org/", "--to", &to])
        .exits(2)
        .complains(&["ftp://e.org/"], &["pass the url"]);
    publish(&["--base", &files.base]).exits(2);
    publish(&["--base", &files.base, "--to", &to, "--listen", "127.0.0.1:0"]).exits(2);
    let listen = ["--base", &files.base, "--listen", "127.0.0.1:0", "--hub"];
    for hub in ["ftp://hub.example/", "https://user:secret@hub.example/"] {
        let run = publish(&[&listen[..], &[hub]].concat()).exits(2);
        let run = run.complains(&["hub"], &["pass"]);
        assert!(!run.stderr.contains("secret"), "{run}");
    }
    std::fs::write(files.public().join("mine.txt"), "mine").unwrap();
    publish(&["--base", &files.base, "--to", &to])
        .exits(2)
        .complains(&["public", "not empty"], &["pass an empty"]);
    std::fs::remove_file(files.public().join("mine.txt")).unwrap();
    files.publish(&copy).exits(0);
    let other = publish(&["--base", "http://other.example/", "--to", &to]).exits(2);
    other.complains(&["public", &files.base], &["pass another place"]);
    let below =
        copy.run("publish", &["--base", "http://other.example/below", "--to", &format!("{to}-2")]).exits(0);
    below.says(&[
        "hint: redirect /.well-known/resourcesync",
        "http://other.example/below/.well-known/resourcesync",
    ]);
}
