//! Documents that cannot be read, or not to their end.

use simulated_source::{Changes, Fault};
use testkit::scripted::Reply;

use crate::bad_input::{LIST, small};
use crate::common::{Destination, Site, in_step, resource, source, urlset};

#[tokio::test]
async fn a_truncated_list_gives_what_stands_before_the_cut() {
    let source = source(small(40)).await;
    source.set_fault(source.resource_list(), Fault::TruncateDocument);
    let copy = Destination::directory();
    let run = copy.sync(&source.well_known()).exits(1).says(&[&source.resource_list(), "cut short"]);
    assert_eq!(run.json()["in_sync"], false, "{run}");
    assert_eq!(copy.present().len(), 20, "{run}");
    assert_eq!(copy.view().len(), 20);

    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_malformed_list_gives_what_stands_before_the_fault() {
    let source = source(small(40)).await;
    source.set_fault(source.resource_list(), Fault::MalformedDocument);
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(1).says(&[&source.resource_list(), "not well-formed", "line"]);
    assert_eq!(copy.present().len(), 20);
    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_bare_list_that_is_malformed_gives_what_stands_before_the_fault() {
    let source = source(small(40)).await;
    source.set_fault(source.resource_list(), Fault::MalformedDocument);
    let copy = Destination::directory();
    copy.sync(&source.resource_list()).exits(1).says(&[&source.resource_list(), "not well-formed"]);
    assert_eq!(copy.present().len(), 20);
}

#[tokio::test]
async fn a_part_that_cannot_be_read_costs_its_own_entries_only() {
    let source = source(small(40).entries_per_list(10)).await;
    let part = source.resource_list().replace(".xml", "-2.xml");
    for fault in [Fault::status(404), Fault::HtmlPage] {
        source.set_fault(part.as_str(), fault);
        let copy = Destination::directory();
        copy.sync(&source.well_known()).exits(1).says(&[&part]);
        assert_eq!(copy.present().len(), 30);
        source.clear_faults();
        copy.sync(&source.well_known()).exits(0);
        copy.mirrors(&source);
    }
}

#[tokio::test]
async fn a_spoiled_list_costs_nothing_that_is_held() {
    for fault in [Fault::TruncateDocument, Fault::MalformedDocument, Fault::HtmlPage, Fault::status(404)] {
        let (source, copy) = in_step(small(40)).await;
        let held = copy.ls();
        let view = copy.view();
        source.change(Changes { create: 10, update: 0, delete: 0 });
        source.refresh_resource_list();
        source.set_fault(source.resource_list(), fault.clone());
        source.set_fault(source.change_list(), fault.clone());
        let run = copy.sync_with(&source.well_known(), &["--mode", "baseline"]).exits(1);
        let run = run.says(&[&source.resource_list(), &source.change_list()]);
        let ls = copy.ls();
        let files = copy.view();
        assert!(held.iter().all(|(uri, before)| ls.get(uri) == Some(before)), "{fault:?}: {run}");
        assert!(view.iter().all(|(name, before)| files.get(name) == Some(before)), "{fault:?}: {run}");
        source.clear_faults();
        copy.sync_with(&source.well_known(), &["--mode", "baseline"]).exits(0);
        copy.mirrors(&source);
    }
}

#[tokio::test]
async fn a_spoiled_change_list_hides_no_change_for_ever() {
    for fault in [Fault::TruncateDocument, Fault::MalformedDocument, Fault::cut_off(300)] {
        let (source, copy) = in_step(small(40)).await;
        source.change(Changes { create: 4, update: 8, delete: 4 });
        source.set_fault(source.change_list(), fault.clone());
        let run = copy.sync(&source.well_known()).exits(1).says(&[&source.change_list()]);
        assert_eq!(run.json()["in_sync"], false, "{fault:?}: {run}");
        source.clear_faults();
        copy.sync(&source.well_known()).exits(0);
        copy.mirrors(&source);
    }
}

#[tokio::test]
async fn a_bad_entry_never_loses_a_list() {
    let site = Site::start().await;
    let [one, two] = ["/1.txt", "/2.txt"].map(|path| site.serve(path, format!("this is {path}")));
    let bad = [
        resource(&one, ""),
        "  <url><lastmod>2026-01-01</lastmod></url>\n".to_owned(),
        resource("ftp://example.org/x", ""),
        resource("http://[broken/x", ""),
        resource(&two, "length=\"many\""),
    ];
    let url = site.serve("/list.xml", urlset(LIST, &bad));
    let copy = Destination::directory();
    // Each problem is named by document, line and column.
    let run =
        copy.sync(&url).exits(1).says(&[&format!("{url}#5:"), &format!("{url}#6:"), &format!("{url}#7:")]);
    assert_eq!(run.count("stored"), 2, "{run}");
    assert_eq!(copy.cat(&two), b"this is /2.txt");
    assert_eq!(run.json()["quirks"]["unreadable-length"], 1, "{run}");

    site.serve("/list.xml", urlset(LIST, &[resource(&one, ""), resource(&two, "")]));
    copy.sync(&url).exits(0);
}

#[tokio::test]
async fn an_empty_list_is_no_failure_and_deletes_nothing() {
    let site = Site::start().await;
    let url = site.serve("/list.xml", urlset(LIST, &[]));
    let copy = Destination::directory();
    let run = copy.sync(&url).exits(0);
    assert_eq!((run.count("listed"), run.count("stored"), run.count("deleted")), (0, 0, 0), "{run}");

    let one = site.serve("/1.txt", "one");
    site.serve("/list.xml", urlset(LIST, &[resource(&one, "")]));
    copy.sync(&url).exits(0);
    site.serve("/list.xml", urlset(&LIST.replace("2026", "2027"), &[]));
    let run = copy.sync(&url).exits(0);
    assert_eq!((run.count("listed"), run.count("deleted")), (0, 0), "{run}");
    assert_eq!((copy.cat(&one), copy.file(&one)), (b"one".to_vec(), Some(b"one".to_vec())));
}

#[tokio::test]
async fn an_entity_bomb_is_refused() {
    let site = Site::start().await;
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE u [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><urlset/>";
    let url = site.serve("/list.xml", bomb);
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let copy = Destination::directory();
    copy.sync(&url).exits(3).complains(&[&url, "DOCTYPE"], &["refused"]);
}

#[tokio::test]
async fn strict_refuses_what_is_tolerated_otherwise() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "one");
    let url = site.serve("/list.xml", urlset("capability=\"resourcelist\"", &[resource(&one, "")]));
    let copy = Destination::directory();
    let strict = copy.sync_with(&url, &["--strict"]);
    assert!(matches!(strict.exit, Some(1 | 3)), "{strict}");
    assert!(strict.stderr.contains("missing-at"), "{strict}");
    copy.sync(&url).exits(0);
    assert_eq!(copy.cat(&one), b"one");
}
