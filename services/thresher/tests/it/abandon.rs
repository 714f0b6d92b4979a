//! A cancelled run, as by an operator, in the middle of its work: the next run still brings every change.

use std::time::Duration;

use crate::common::{Destination, Process, Site, in_step, resource, urlset};
use catalog::{Catalog, CatalogConfig};
use model::SystemClock;
use simulated_source::{Changes, Size, SourceSpec};
use store::{Key, Store, StoreOptions};
use testkit::scripted::Reply;

/// Cancels the run that a killed process left behind.
async fn abandon(copy: &Destination) {
    let target = copy.into.parse().unwrap();
    let store = Store::open(&target, StoreOptions::default()).await.unwrap();
    let [note] = store.sources().await.unwrap().try_into().unwrap();
    let path = Key::Catalog(note.source).to_string();
    let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
    let run = harvest::cancel(&catalog, &SystemClock).await.unwrap();
    assert!(run.is_some_and(|run| run.cancelled), "there was a run to be given up");
    catalog.close().await.unwrap();
}

#[tokio::test]
async fn closed_change_lists_under_an_index_that_has_not_changed_since_are_read_again() {
    let spec = SourceSpec::default().resources(300).size(Size::Fixed(300)).entries_per_change_list(20);
    let (source, copy) = in_step(spec.latency(Duration::from_millis(5))).await;
    // With few changes, the index may be the same before and after. With many, lists are closed.
    for changes in [100, 30, 3] {
        source.change(Changes { create: changes / 3, update: changes / 3, delete: changes / 3 });
        source.reset_requests();
        // It cannot end before it is killed.
        source.allow(changes / 3);
        let syncing = Process::start(&mut copy.command("sync", &[&source.well_known()]));
        syncing.kill_when(|| source.requests().resources >= changes / 3).await;
        source.allow_all();
        abandon(&copy).await;
        copy.sync(&source.well_known()).exits(0);
        copy.mirrors(&source);
        let idle = copy.sync(&source.well_known()).exits(0);
        assert_eq!((idle.count("stored"), idle.count("deleted")), (0, 0), "{idle}");
    }
}

#[tokio::test]
async fn changes_that_fell_off_a_list_after_its_run_was_given_up_are_a_gap() {
    const DAYS: [u32; 5] = [1, 2, 3, 4, 5];
    let day = |n: u32| format!("2026-01-{n:02}T00:00:00Z");
    let site = Site::start().await;
    let path = |n: u32| format!("/{n}.txt");
    for n in DAYS {
        site.serve(&path(n), format!("first {n}"));
    }
    let list = |at: u32| {
        let entries = DAYS.map(|n| resource(&site.uri(&path(n)), ""));
        let md = format!("capability=\"resourcelist\" at=\"{}\"", day(at));
        site.serve("/list.xml", urlset(&md, &entries));
    };
    // A list of the latest few changes, which does not say where it begins.
    let changes = |days: &[u32]| {
        let change = |n: &u32| {
            let md = format!("change=\"updated\" datetime=\"{}\"", day(*n));
            resource(&site.uri(&path(*n)), &md)
        };
        let entries: Vec<String> = days.iter().map(change).collect();
        site.serve("/changes.xml", urlset("capability=\"changelist\"", &entries));
    };
    let offers = [
        resource(&site.uri("/list.xml"), "capability=\"resourcelist\""),
        resource(&site.uri("/changes.xml"), "capability=\"changelist\""),
    ];
    let way_in = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
    let copy = Destination::directory();
    list(1);
    changes(&[]);
    copy.sync(&way_in).exits(0);

    // The second and third have changed. The run is cancelled while it waits for the second.
    for n in [2, 3] {
        site.serve(&path(n), format!("second, {n}"));
    }
    site.reply("/2.txt", Reply::ok("second, 2").delay(Duration::from_secs(600)));
    let asked = site.requests_at("/2.txt");
    changes(&[2, 3]);
    let syncing = Process::start(&mut copy.command("sync", &[&way_in]));
    syncing.kill_when(|| site.requests_at("/2.txt") > asked).await;
    abandon(&copy).await;

    // By the next run, the list no longer contains the second.
    site.serve("/2.txt", "second, 2");
    changes(&[3, 4]);
    copy.sync(&way_in).exits(1).says(&[&day(3), "gap"]);
    list(4);
    copy.sync(&way_in).exits(0);
    for n in [2, 3] {
        assert_eq!(copy.cat(&site.uri(&path(n))), format!("second, {n}").as_bytes());
    }
}
