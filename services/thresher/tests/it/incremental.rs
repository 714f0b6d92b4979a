//! Changes since the last run are fetched, and nothing else.

use crate::common::{Destination, Run, Site, in_step, requests_at, resource, source, urlset};
use simulated_source::{ChangeKind, Changes, Fault, SimulatedSource, Size, SourceSpec};

fn small(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(0, 600))
}

#[track_caller]
fn next(source: &SimulatedSource, copy: &Destination) -> Run {
    let run = copy.sync(&source.well_known()).exits(0);
    assert_eq!(run.json()["mode"], "incremental", "{run}");
    copy.mirrors(source);
    run
}

#[tokio::test]
async fn created_updated_and_deleted_resources_are_followed() {
    let (source, copy) = in_step(small(100)).await;
    let changes = source.change(Changes { create: 5, update: 10, delete: 7 });
    let run = next(&source, &copy);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (15, 7, 0), "{run}");
    assert_eq!(source.requests().resources, 15, "what changed, once each; nothing for what is gone");
    assert_eq!(requests_at(&source, &source.resource_list()), 0, "the Resource List is not read again");
    assert_eq!(source.requests().documents, 2, "the Change List and robots.txt: {:?}", source.requests());
    for change in changes.iter().filter(|change| change.kind == ChangeKind::Deleted) {
        let uri = source.resource_uri(change.index);
        assert_eq!(copy.state(&uri).as_deref(), Some("deleted"), "a tombstone stays: {uri}");
        assert_eq!(copy.file(&uri), None);
        copy.run("cat", &[&uri]).exits(1).complains(&[&uri], &["explain", "deleted"]);
    }

    source.reset_requests();
    let again = next(&source, &copy);
    assert_eq!(source.requests().resources, 0, "{again}");
    assert_eq!((again.count("stored"), again.count("deleted")), (0, 0), "{again}");
}

#[tokio::test]
async fn several_changes_of_one_resource_cost_one_request() {
    let (source, copy) = in_step(small(20)).await;
    for (index, kind) in [
        (1, ChangeKind::Updated),
        (20, ChangeKind::Created),
        (1, ChangeKind::Updated),
        (2, ChangeKind::Updated),
        (20, ChangeKind::Updated),
        (2, ChangeKind::Deleted),
        (3, ChangeKind::Deleted),
        (3, ChangeKind::Created),
        (21, ChangeKind::Created),
        (21, ChangeKind::Deleted),
    ] {
        source.change_one(index, kind);
    }
    let run = next(&source, &copy);
    assert_eq!(source.requests().resources, 3, "1, 20 and 3, each as it is now: {run}");
    assert_eq!(copy.state(&source.resource_uri(2)).as_deref(), Some("deleted"));
    assert_ne!(copy.state(&source.resource_uri(21)).as_deref(), Some("present"));
}

#[tokio::test]
async fn a_resource_that_comes_back_is_held_again() {
    let (source, copy) = in_step(small(20)).await;
    source.change_one(3, ChangeKind::Deleted);
    next(&source, &copy);
    assert_eq!(copy.state(&source.resource_uri(3)).as_deref(), Some("deleted"));
    source.change_one(3, ChangeKind::Created);
    let run = next(&source, &copy);
    assert_eq!(run.count("stored"), 1, "{run}");
    assert_eq!(copy.state(&source.resource_uri(3)).as_deref(), Some("present"));
}

#[tokio::test]
async fn an_index_of_change_lists_is_followed_and_closed_parts_are_read_once() {
    let (source, copy) = in_step(small(100).entries_per_change_list(10)).await;
    source.change(Changes { create: 10, update: 20, delete: 5 });
    let run = next(&source, &copy);
    assert_eq!(run.count("deleted"), 5, "{run}");
    let part = |number: u64| source.change_list().replace(".xml", &format!("-{number}.xml"));
    for number in 1..=4 {
        assert_eq!(requests_at(&source, &part(number)), 1, "part {number}");
    }
    source.reset_requests();
    source.change(Changes { create: 3, update: 5, delete: 2 });
    next(&source, &copy);
    for number in 1..=3 {
        assert_eq!(requests_at(&source, &part(number)), 0, "part {number} was closed when it was read");
    }
    assert_eq!((requests_at(&source, &part(4)), requests_at(&source, &part(5))), (1, 1));
    assert_eq!(source.requests().resources, 8);
}

#[tokio::test]
async fn a_list_made_by_night_and_the_changes_since_give_the_present() {
    let source = source(small(60)).await;
    source.change(Changes { create: 6, update: 12, delete: 4 });
    let copy = Destination::directory();
    let run = copy.sync(&source.well_known()).exits(0);
    assert_eq!(run.json()["mode"], "baseline", "{run}");
    assert_eq!(source.requests().resources, 62, "each resource once, as it is now: {run}");
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_baseline_asked_for_compares_everything_and_fetches_only_what_differs() {
    let (source, copy) = in_step(small(60)).await;
    source.change(Changes { create: 2, update: 3, delete: 1 });
    source.refresh_resource_list();
    let run = copy.sync_with(&source.well_known(), &["--mode", "baseline"]).exits(0);
    assert_eq!(run.json()["mode"], "baseline", "{run}");
    assert_eq!(source.requests().resources, 5, "{run}");
    copy.mirrors(&source);
}

#[tokio::test]
async fn changes_that_the_source_no_longer_tells_are_found_in_its_resource_list() {
    let (source, copy) = in_step(small(60)).await;
    source.change(Changes { create: 4, update: 6, delete: 0 });
    source.advance(60);
    source.forget_changes();
    source.refresh_resource_list();
    source.change(Changes { create: 1, update: 1, delete: 1 });
    let run = copy.sync(&source.well_known()).exits(0);
    assert_eq!(run.count("gaps"), 1, "the gap is counted: {run}");
    copy.mirrors(&source);
    let after = copy.sync(&source.well_known()).exits(0);
    assert_eq!(after.count("gaps"), 0, "and closed: {after}");
}

#[tokio::test]
async fn an_updated_resource_that_is_gone_when_it_is_fetched_stays_a_problem_until_its_deletion_is_told() {
    let (source, copy) = in_step(small(20)).await;
    let uri = source.resource_uri(4);
    let before = copy.cat(&uri);
    source.change_one(4, ChangeKind::Updated);
    source.set_fault(4, Fault::status(404));
    copy.sync(&source.well_known()).exits(1).says(&[&uri, "404"]);
    assert_eq!(copy.state(&uri).as_deref(), Some("problem"));
    assert_eq!(copy.cat(&uri), before, "what was held stays");
    source.change_one(4, ChangeKind::Deleted);
    source.reset_requests();
    next(&source, &copy);
    assert_eq!(source.requests().resources, 0, "what is deleted is not asked for");
    assert_eq!(copy.state(&uri).as_deref(), Some("deleted"));
}

#[tokio::test]
async fn an_older_change_does_not_undo_a_newer_one_whatever_the_order_of_the_list() {
    let site = Site::start().await;
    let [one, two] = ["/1.txt", "/2.txt"].map(|path| site.serve(path, format!("first {path}")));
    let list = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
    site.serve("/list.xml", urlset(list, &[resource(&one, ""), resource(&two, "")]));
    let changes = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    site.serve("/changes.xml", urlset(changes, &[]));
    let capabilities = [
        resource(&site.uri("/list.xml"), "capability=\"resourcelist\""),
        resource(&site.uri("/changes.xml"), "capability=\"changelist\""),
    ];
    let way_in = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities));
    let copy = Destination::directory();
    copy.sync(&way_in).exits(0);

    // Newest first, as some repositories write it.
    let newest_first = [
        resource(&two, "change=\"updated\" datetime=\"2026-01-02T00:00:04Z\""),
        resource(&one, "change=\"deleted\" datetime=\"2026-01-02T00:00:03Z\""),
        resource(&two, "change=\"deleted\" datetime=\"2026-01-02T00:00:02Z\""),
        resource(&one, "change=\"updated\" datetime=\"2026-01-02T00:00:01Z\""),
    ];
    site.serve("/changes.xml", urlset(changes, &newest_first));
    site.serve("/2.txt", "second /2.txt");
    let asked_before = site.requests_at("/1.txt");
    let run = copy.sync(&way_in).exits(0);
    assert_eq!(copy.state(&one).as_deref(), Some("deleted"), "{run}");
    assert_eq!(copy.file(&one), None);
    assert_eq!(site.requests_at("/1.txt"), asked_before, "nobody asks for what is deleted");
    assert_eq!(copy.cat(&two), b"second /2.txt");
    assert!(
        run.json()["quirks"].as_object().is_some_and(|quirks| !quirks.is_empty()),
        "it is counted: {run}"
    );

    // An update listed after the deletion, and dated after it, brings the resource back.
    let back = resource(&one, "change=\"updated\" datetime=\"2026-01-03T00:00:00Z\"");
    site.serve("/changes.xml", urlset(changes, &[newest_first.as_slice(), &[back]].concat()));
    copy.sync(&way_in).exits(0);
    assert_eq!(copy.cat(&one), b"first /1.txt");
}

#[tokio::test]
async fn a_change_without_its_kind_never_deletes() {
    let site = Site::start().await;
    let uri = site.serve("/1.txt", "first");
    let list = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
    site.serve("/list.xml", urlset(list, &[resource(&uri, "")]));
    let changes = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    site.serve("/changes.xml", urlset(changes, &[resource(&uri, "datetime=\"2026-01-02T00:00:00Z\"")]));
    let capabilities = [
        resource(&site.uri("/list.xml"), "capability=\"resourcelist\""),
        resource(&site.uri("/changes.xml"), "capability=\"changelist\""),
    ];
    let way_in = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities));
    let copy = Destination::directory();
    let run = copy.sync(&way_in).exits(0);
    assert_eq!(run.json()["quirks"]["missing-change"], 1, "{run}");
    assert_eq!(copy.cat(&uri), b"first");
}

#[tokio::test]
async fn explain_tells_the_story_of_a_resource() {
    let (source, copy) = in_step(small(20)).await;
    let uri = source.resource_uri(5);
    let digest = || source.expected().find(|now| now.uri == uri).map(|now| now.sha256).unwrap();
    let first = digest();
    source.change_one(5, ChangeKind::Updated);
    let second = digest();
    next(&source, &copy);
    let held = copy.explain(&uri);
    for part in [&uri, &first, &second, &source.resource_list(), &source.change_list(), &source.well_known()]
    {
        assert!(held.contains(part), "{part} belongs to the story:\n{held}");
    }
    let stored = held.find(&first).unwrap();
    let updated = held.find(&second).unwrap();
    assert!(stored < updated, "in the order of time:\n{held}");

    source.change_one(5, ChangeKind::Deleted);
    next(&source, &copy);
    let gone = copy.explain(&uri);
    assert!(gone.contains(&second) && gone.to_lowercase().contains("deleted"), "{gone}");
    let json = copy.run("explain", &[&uri, "--json"]).exits(0).json();
    assert_eq!(json["events"].as_array().map(Vec::len), Some(3), "{json}");

    let unknown = source.resource_uri(999);
    copy.run("explain", &[&unknown]).exits(1).complains(&[&unknown], &["ls"]);
}
