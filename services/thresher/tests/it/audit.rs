//! `thresher audit`: it names each kind of difference and requests no resource. `--repair` requests exactly those that
//! differ.

use std::collections::BTreeMap;

use crate::common::{Destination, Inside, Run, Site, in_step, resource, source, urlset};
use fixity::{Computed, Sha256};
use futures::{TryStreamExt as _, stream};
use harvest::{HarvestError, queue_repairs};
use model::{Location, RunId, SystemClock};
use simulated_source::{Changes, Size, SourceSpec};
use testkit::scripted::Reply;

const FIRST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
const SECOND: &str = "capability=\"resourcelist\" at=\"2026-01-02T00:00:00Z\"";

/// An entry that declares the digest of `content`.
fn declares(uri: &str, content: &str) -> String {
    resource(uri, &format!("hash=\"sha-256:{}\"", Sha256::of(content.as_bytes())))
}

/// The differences of each kind, by the last part of their URIs.
fn listed(run: &Run) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in run.json_lines() {
        if let (Some(kind), Some(uri)) = (line["difference"].as_str(), line["uri"].as_str()) {
            let name = uri.rsplit('/').next().unwrap_or_default();
            found.entry(kind.to_owned()).or_default().push(name.to_owned());
        }
    }
    found
}

fn expected(kinds: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    kinds
        .iter()
        .map(|(kind, names)| ((*kind).to_owned(), names.iter().map(|&name| name.to_owned()).collect()))
        .collect()
}

/// Every record of the catalog, as text, and the last run that it knows.
async fn known(copy: &Destination, entry: &str) -> (Vec<String>, Option<RunId>) {
    let inside = Inside::of(copy, entry).await;
    let resources = inside.catalog.scan_resources(None, None).await.unwrap();
    let mut known: Vec<String> = resources.map_ok(|one| format!("{one:?}")).try_collect().await.unwrap();
    let documents = inside.catalog.scan_documents().await.unwrap();
    known.extend(documents.map_ok(|one| format!("{one:?}")).try_collect::<Vec<_>>().await.unwrap());
    known.push(format!("{:?}", inside.catalog.sets().await.unwrap()));
    known.push(format!("{:?}", inside.catalog.discovery().await.unwrap()));
    known.push(format!("{:?}", inside.catalog.last_seq().await.unwrap()));
    assert_eq!(inside.catalog.count_pending().await.unwrap(), 0);
    let last = inside.catalog.last_run().await.unwrap().map(|run| run.id);
    inside.close().await;
    (known, last)
}

#[tokio::test]
async fn each_kind_of_difference_is_found_by_its_name_and_repaired_and_nothing_else_is_asked_for() {
    let site = Site::start().await;
    let names = ["bare", "edited", "gone", "moved", "same", "stale"];
    let uris = names.map(|name| site.serve(&format!("/{name}"), name));
    let [bare, edited, gone, moved, same, stale] = &uris;
    let old = [
        resource(bare, ""),
        declares(edited, "edited"),
        declares(gone, "gone"),
        declares(moved, "moved"),
        declares(same, "same"),
        declares(stale, "stale"),
    ];
    let entry = site.serve("/list.xml", urlset(FIRST, &old));
    let copy = Destination::directory();
    copy.sync(&entry).exits(0);
    let run = copy.run("audit", &[&entry, "--json"]).exits(0);
    assert_eq!((run.count("matching"), run.count("unverifiable")), (5, 1), "{run}");

    let fresh = site.serve("/fresh", "fresh");
    site.serve("/stale", "a later version");
    let new = [
        resource(bare, ""),
        declares(edited, "edited"),
        declares(moved, "moved"),
        declares(same, "same"),
        declares(stale, "a later version"),
        declares(&fresh, "fresh"),
    ];
    site.serve("/list.xml", urlset(SECOND, &new));
    let inside = Inside::of(&copy, &entry).await;
    inside.edit(edited, |record| record.bitstream.as_mut().unwrap().computed = Computed::of(b"x")).await;
    let elsewhere = Location::Object { sha256: Sha256::of(b"elsewhere") };
    inside.edit(moved, |record| record.bitstream.as_mut().unwrap().location = elsewhere).await;
    inside.close().await;
    let (before, last) = known(&copy, &entry).await;

    let run = copy.run("audit", &[&entry, "--json", "--list"]).exits(1);
    let kinds: [(&str, &[&str]); 4] = [
        ("mismatched", &["edited", "moved"]),
        ("extra", &["gone"]),
        ("missing", &["fresh"]),
        ("outdated", &["stale"]),
    ];
    assert_eq!(listed(&run), expected(&kinds), "{run}");
    let counts =
        ["differences", "matching", "unverifiable", "missing", "outdated", "mismatched", "extra", "queued"];
    assert_eq!(counts.map(|name| run.count(name)), [5, 1, 1, 1, 1, 2, 1, 0], "{run}");
    assert_eq!(run.json()["mode"], "audit");
    assert_eq!(names.map(|name| site.requests_at(&format!("/{name}"))), [1; 6]);
    let (after, audit) = known(&copy, &entry).await;
    assert!(after == before && audit != last, "nothing is written but the run");
    let text = copy.run("audit", &["--into", &copy.into]).exit;
    assert_eq!(text, Some(2), "--into twice is wrong usage");
    let text = copy.run("audit", &[]).exits(1).stdout;
    for words in ["5 resources differ", "1  missing", "2  mismatch", &fresh, "--repair"] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }

    let run = copy.run("audit", &[&entry, "--repair", "--json"]).exits(1);
    assert_eq!((run.count("queued"), run.count("stored"), run.count("repaired")), (4, 4, 2), "{run}");
    assert_eq!(names.map(|name| site.requests_at(&format!("/{name}"))), [1, 2, 1, 2, 1, 2]);
    assert_eq!(site.requests_at("/fresh"), 1);
    for (uri, body) in [(edited, "edited"), (moved, "moved"), (stale, "a later version"), (&fresh, "fresh")] {
        assert_eq!(copy.cat(uri), body.as_bytes());
    }

    // Extra resources are kept until a later list confirms them, or the operator approves.
    let run = copy.run("audit", &[&entry, "--json"]).exits(1);
    assert_eq!(["differences", "extra", "extra_noted"].map(|name| run.count(name)), [1, 1, 1], "{run}");
    let word = ["--repair", "--absent", "delete", "--max-deletes", "100%"];
    copy.run("audit", &[&[entry.as_str()], &word[..]].concat()).exits(0);
    assert_eq!(copy.state(gone).as_deref(), Some("deleted"));
    copy.run("audit", &[&entry]).exits(0);
    assert_eq!(site.requests_at("/fresh"), 1);
}

#[tokio::test]
async fn changes_after_the_list_count_over_indexes_and_gzip_and_a_repair_is_exact() {
    let spec = SourceSpec::default().resources(240).size(Size::Range(1, 400)).gzip(true);
    let (source, copy) = in_step(spec.entries_per_list(50).entries_per_change_list(4)).await;
    let entry = source.well_known();
    let run = copy.run("audit", &[&entry, "--json"]).exits(0);
    assert_eq!((run.count("matching"), run.count("held")), (240, 240), "{run}");
    source.change(Changes { create: 5, update: 0, delete: 0 });
    source.change(Changes { create: 0, update: 7, delete: 3 });

    let run = copy.run("audit", &[&entry, "--json", "--list"]).exits(1);
    let found = listed(&run);
    let count = |kind: &str| found.get(kind).map_or(0, Vec::len);
    assert_eq!(["missing", "extra", "mismatched"].map(count), [5, 3, 0], "{run}");
    assert!(count("outdated") > 0 && count("outdated") <= 7, "{run}");
    assert_eq!(source.requests().resources, 0);
    let to_fetch = (5 + count("outdated")) as u64;
    let run = copy.run("audit", &[&entry, "--repair", "--json"]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (to_fetch, 3, 0), "{run}");
    assert_eq!(source.requests().resources, to_fetch);
    copy.mirrors(&source);
    copy.run("audit", &[&entry]).exits(0);

    // A new list contains them all, and the next run finds nothing to do.
    source.refresh_resource_list();
    copy.run("audit", &[&entry]).exits(0);
    let run = copy.sync(&entry).exits(0);
    assert_eq!((run.count("stored"), source.requests().resources), (0, to_fetch), "{run}");
    copy.run("audit", &[&entry]).exits(0);
}

#[tokio::test]
async fn only_what_is_wanted_is_compared() {
    let site = Site::start().await;
    let [a, b] = ["a/1", "b/1"].map(|name| site.serve(&format!("/{name}"), name));
    let entry = site.serve("/list.xml", urlset(FIRST, &[declares(&a, "a/1"), declares(&b, "b/1")]));
    let copy = Destination::directory();
    copy.sync_with(&entry, &["--include", "/a/"]).exits(0);
    let run = copy.run("audit", &[&entry, "--include", "/a/", "--json"]).exits(0);
    assert_eq!((run.count("matching"), run.count("listed")), (1, 1), "{run}");
    copy.run("audit", &[&entry, "--exclude", "/b/"]).exits(0);
    let run = copy.run("audit", &[&entry, "--json", "--list"]).exits(1);
    assert_eq!(run.count("missing"), 1, "{run}");
    // An audit with other filters is no reason to reread everything.
    site.serve("/list.xml", urlset(FIRST, &[declares(&a, "a/1"), declares(&b, "b/1")]));
    let run = copy.sync_with(&entry, &["--include", "/a/"]).exits(0);
    assert_eq!(run.count("stored"), 0, "{run}");
}

#[tokio::test]
async fn of_two_sets_what_one_of_them_still_lists_is_not_extra() {
    let site = Site::start().await;
    let [x, both, y] = ["x", "both", "y"].map(|name| site.serve(&format!("/{name}"), name));
    let list = |path: &str, md: &str, uris: &[&String]| {
        let entries: Vec<String> =
            uris.iter().map(|uri| declares(uri, uri.rsplit('/').next().unwrap())).collect();
        site.serve(path, urlset(md, &entries))
    };
    let lists = [list("/a/list.xml", FIRST, &[&x, &both]), list("/b/list.xml", FIRST, &[&both, &y])];
    let caps = ["a", "b"].map(|set| {
        let link = lists.iter().find(|list| list.contains(&format!("/{set}/"))).unwrap();
        let entry = resource(link, "capability=\"resourcelist\"");
        site.serve(&format!("/{set}/caps.xml"), urlset("capability=\"capabilitylist\"", &[entry]))
    });
    let entries = caps.map(|caps| resource(&caps, "capability=\"capabilitylist\""));
    let entry = site.serve("/description.xml", urlset("capability=\"description\"", &entries));
    let copy = Destination::directory();
    copy.sync(&entry).exits(0);
    let run = copy.run("audit", &[&entry, "--json"]).exits(0);
    assert_eq!((run.count("matching"), run.count("listed")), (3, 4), "{run}");
    list("/b/list.xml", SECOND, &[]);
    let run = copy.run("audit", &[&entry, "--json", "--list"]).exits(1);
    assert_eq!(listed(&run), expected(&[("extra", &["y"])]), "{run}");
}

#[tokio::test]
async fn where_a_list_cannot_be_read_nothing_is_concluded_from_its_silence() {
    let site = Site::start().await;
    let uris = ["1", "2"].map(|name| site.serve(&format!("/{name}"), name));
    let parts = [0, 1].map(|n| {
        let entries = [declares(&uris[n], &(n + 1).to_string())];
        let part = site.serve(&format!("/list-{n}.xml"), urlset(FIRST, &entries));
        format!("<sitemap><loc>{part}</loc></sitemap>")
    });
    let index = urlset(FIRST, &parts).replace("urlset", "sitemapindex");
    let entry = site.serve("/list.xml", index);
    let copy = Destination::directory();
    copy.sync(&entry).exits(0);
    copy.run("audit", &[&entry]).exits(0);
    site.reply("/list-1.xml", Reply::status(404));
    let run = copy.run("audit", &[&entry, "--json"]).exits(1);
    let counts = ["differences", "unread", "not_compared", "matching"];
    assert_eq!(counts.map(|name| run.count(name)), [0, 1, 1, 1], "{run}");
    let text = copy.run("audit", &[&entry]).exits(1).stdout;
    assert!(text.contains("not everything could be compared") && text.contains("/list-1.xml"), "{text}");
    // The audit does nothing about it, either.
    copy.run("audit", &[&entry, "--repair", "--absent", "delete", "--max-deletes", "100%"]).exits(1);
    assert_eq!(copy.state(&uris[1]).as_deref(), Some("present"));
}

#[tokio::test]
async fn changes_that_begin_after_the_list_leave_a_gap_that_is_told() {
    let site = Site::start().await;
    let uri = site.serve("/1", "1");
    let list = site.serve("/list.xml", urlset(FIRST, &[declares(&uri, "1")]));
    let changes = |from: &str| {
        let md = format!("capability=\"changelist\" from=\"{from}\"");
        site.serve("/changes.xml", urlset(&md, &[]))
    };
    let changes_uri = changes("2026-01-01T00:00:00Z");
    let links =
        [resource(&list, "capability=\"resourcelist\""), resource(&changes_uri, "capability=\"changelist\"")];
    let entry = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &links));
    let copy = Destination::directory();
    copy.sync(&entry).exits(0);
    copy.run("audit", &[&entry]).exits(0);
    changes("2026-01-05T00:00:00Z");
    let run = copy.run("audit", &[&entry, "--json"]).exits(1);
    assert_eq!((run.count("gaps"), run.count("differences")), (1, 0), "{run}");
}

#[tokio::test]
async fn what_cannot_be_audited_says_why_and_what_to_do() {
    let source = source(SourceSpec::default().resources(3)).await;
    let copy = Destination::directory();
    copy.run("audit", &[&source.url()]).exits(2).complains(&[&copy.into], &["earlier sync"]);
    copy.sync(&source.url()).exits(0);
    let other = Site::start().await;
    let entry = other.serve("/list.xml", urlset(FIRST, &[]));
    copy.run("audit", &[&entry]).exits(3).complains(&[&entry], &["thresher sync"]);

    // Pending work of an interrupted run is no difference.
    let inside = Inside::of(&copy, &source.url()).await;
    let uris = vec![Ok::<_, HarvestError>(source.resource_uri(1).parse().unwrap())];
    queue_repairs(&inside.catalog, &SystemClock, stream::iter(uris)).await.unwrap();
    inside.close().await;
    copy.run("audit", &[&source.url()]).exits(3).complains(&["mend"], &["thresher sync"]);
    copy.sync(&source.url()).exits(0);
    copy.run("audit", &[&source.url()]).exits(0);
    let run = copy.sync_with(&source.url(), &["--mode", "audit"]).exits(0);
    assert_eq!((&run.json()["mode"], run.count("matching")), (&"audit".into(), 3), "{run}");
}

#[tokio::test]
async fn changes_alone_are_not_audited_since_they_do_not_tell_what_there_is() {
    let site = Site::start().await;
    let changes = urlset("capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"", &[]);
    let entry = site.serve("/changes.xml", changes);
    let copy = Destination::directory();
    copy.sync(&entry).exits(0);
    copy.run("audit", &[&entry]).exits(3).complains(&[&entry, "changelist"], &["begin the harvest"]);
}
