//! Every document that Thresher writes passes the strict inspection.

use std::path::{Path, PathBuf};

use resourcesync::{Change, Entry, Metadata};
use serde_json::Value;
use simulated_source::{Changes, SourceSpec};

use crate::common::{Destination, Run, Site, resource, source, thresher, urlset};

/// `thresher inspect --strict`, which must accept the document.
#[track_caller]
fn strict(what: &str) -> Run {
    let run = Run::of(thresher().args(["inspect", "--strict", what])).exits(0);
    assert_eq!(run.stderr, "", "{run}");
    let summary = run.json_lines().into_iter().find(|line| line.get("quirks").is_some());
    let summary = summary.unwrap_or_else(|| panic!("no summary: {run}"));
    assert_eq!((&summary["quirks"], &summary["bad"]), (&serde_json::json!({}), &0.into()), "{run}");
    run
}

/// The line of the document itself. If it is in a package, the package's line comes first.
fn document(run: &Run) -> Value {
    run.json_lines().into_iter().find(|line| line.get("document").is_some()).expect("a document")
}

/// The target of the document's link of this relation, if it has one.
fn link(run: &Run, relation: &str) -> Option<String> {
    let links = document(run)["links"].as_array().cloned().unwrap_or_default();
    let found = links.iter().find(|link| link["rel"] == relation);
    found.map(|link| link["href"].as_str().expect("a URI").to_owned())
}

fn locs(run: &Run) -> Vec<String> {
    run.json_lines().iter().filter_map(|line| line["loc"].as_str().map(str::to_owned)).collect()
}

/// All files below a directory that have this ending.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

async fn held() -> (Site, Destination) {
    let site = Site::start().await;
    let copy = Destination::directory();
    let entries: Vec<String> =
        (0..5).map(|n| resource(&site.serve(&format!("/r{n}"), format!("body {n}")), "")).collect();
    let list = urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries);
    copy.sync(&site.serve("/list.xml", list)).exits(0);
    (site, copy)
}

/// Exports as a Resource Dump, and goes up from each document to the Source Description.
fn export_and_climb(copy: &Destination, base: &str, description: &str, filter: &[&str]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump");
    let place = dump.to_str().unwrap();
    let words = [&[place, "--as", "resourcedump", "--base", base], filter].concat();
    copy.run("export", &words).exits(0);
    let base = if base.ends_with('/') { base.to_owned() } else { format!("{base}/") };
    let at = |uri: &str| {
        let relative = uri.strip_prefix(&base).unwrap_or_else(|| panic!("{uri} is not below {base}"));
        dump.join(relative).to_str().unwrap().to_owned()
    };

    let capabilities = format!("{base}capabilitylist.xml");
    let packages = files(&dump, ".zip");
    for package in &packages {
        let run = strict(package.to_str().unwrap());
        assert_eq!(document(&run)["document"], "resourcedump-manifest");
        assert_eq!(link(&run, "up").as_deref(), Some(capabilities.as_str()), "{run}");
    }
    let listed = strict(&at(&format!("{base}resourcedump.xml")));
    assert_eq!(link(&listed, "up").as_deref(), Some(capabilities.as_str()));
    assert_eq!(locs(&listed).len(), packages.len());
    let capabilities = strict(&at(&capabilities));
    let up = link(&capabilities, "up").expect("a Capability List is below a Source Description");
    assert_eq!(up, format!("{base}{description}"));
    let description = strict(&at(&up));
    assert_eq!(document(&description)["document"], "description");
    assert_eq!(locs(&description), [format!("{base}capabilitylist.xml")]);
    packages.len()
}

#[tokio::test]
async fn a_resource_dump_that_is_exported_leads_up_to_its_source_description() {
    let (_site, copy) = held().await;
    assert_eq!(export_and_climb(&copy, "http://example.org/", ".well-known/resourcesync", &[]), 1);
    for base in ["http://example.org/dumps/one/", "http://example.org/dumps/one"] {
        assert_eq!(export_and_climb(&copy, base, "resourcesync_description.xml", &[]), 1);
    }
    let nothing = ["--prefix", "http://elsewhere.example/"];
    assert_eq!(export_and_climb(&copy, "http://example.org/d/", "resourcesync_description.xml", &nothing), 0);
}

#[tokio::test]
async fn the_packs_of_a_store_are_packages_with_sound_manifests() {
    let (_site, copy) = held().await;
    let packs: Vec<PathBuf> = files(Path::new(&copy.into), "")
        .into_iter()
        .filter(|path| std::fs::read(path).unwrap().starts_with(b"PK\x03\x04"))
        .collect();
    assert!(!packs.is_empty(), "small resources travel in packs");
    for pack in packs {
        let run = strict(pack.to_str().unwrap());
        assert_eq!(document(&run)["document"], "resourcedump-manifest", "{run}");
    }
}

#[tokio::test]
async fn a_change_notification_that_is_published_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let channel = websub::Channel {
        topic: "http://example.com/change/".parse().unwrap(),
        hub: "http://hub.example.org/".parse().unwrap(),
        capability_list: Some("http://example.com/capabilitylist.xml".parse().unwrap()),
    };
    let [from, at, until] = ["00", "01", "02"]
        .map(|hour| format!("2026-01-01T{hour}:00:00Z").parse::<jiff::Timestamp>().unwrap());
    let metadata =
        Metadata { change: Some(Change::Updated), datetime: Some(at.into()), ..Metadata::default() };
    let entry = Entry { metadata, ..Entry::new("http://example.com/r1") };
    for (number, entries) in [vec![entry], Vec::new()].into_iter().enumerate() {
        let mut published = websub::publish(&channel, from, until, entries, 100_000);
        let told = published.next().unwrap().unwrap();
        let path = folder.path().join(format!("{number}.xml"));
        std::fs::write(&path, told.body).unwrap();
        let run = strict(path.to_str().unwrap());
        assert_eq!(link(&run, "up").as_deref(), Some("http://example.com/capabilitylist.xml"));
    }
}

#[tokio::test]
async fn the_simulated_source_of_the_demo_writes_sound_documents() {
    let large = SourceSpec::default().entries_per_list(40).entries_per_change_list(3);
    for spec in [SourceSpec::default(), large] {
        let source = source(spec).await;
        source.change(Changes { create: 2, update: 6, delete: 2 });
        source.refresh_resource_list();
        let mut waiting = vec![source.well_known()];
        let mut seen = 0;
        while let Some(uri) = waiting.pop() {
            let run = strict(&uri);
            let line = document(&run);
            seen += 1;
            let leads_on = line["root"] == "sitemapindex"
                || ["description", "capabilitylist"].iter().any(|kind| line["document"] == *kind);
            assert_eq!(link(&run, "up").is_none(), line["document"] == "description", "{run}");
            if leads_on {
                waiting.extend(locs(&run));
            }
        }
        assert!(seen >= 4, "{seen} documents");
    }
}
