//! An origin that is down, or asks for a pause: its pending resources wait, and delay nothing else.

use std::net::TcpListener;

use crate::common::{Destination, Site, resource, urlset};
use testkit::scripted::Reply;

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
const LATER: &str = "capability=\"resourcelist\" at=\"2026-01-02T00:00:00Z\"";

/// An origin on this machine without a server.
fn deserted_origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    format!("http://{}", listener.local_addr().expect("a bound socket has an address"))
}

fn entries(origin: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| resource(&format!("{origin}/{n}.txt"), "")).collect()
}

#[tokio::test]
async fn a_dead_mirror_becomes_problems_and_does_not_keep_the_run_from_finishing() {
    let site = Site::start().await;
    let here: Vec<String> =
        (0..5).map(|n| resource(&site.serve(&format!("/{n}.txt"), format!("body {n}")), "")).collect();
    let away = entries(&deserted_origin(), 30);
    let list = site.serve("/list.xml", urlset(LIST, &[here.clone(), away].concat()));
    let copy = Destination::directory();
    let run = copy.sync(&list).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (5, 30), "{run}");

    // The run has ended. The next one reads the list again, which no longer names the mirror. Its resources are not
    // needed any more.
    site.serve("/list.xml", urlset(LATER, &here));
    let run = copy.sync(&list).exits(0);
    assert_eq!((run.count("unchanged"), run.count("failed")), (5, 0), "{run}");
}

#[tokio::test]
async fn a_source_that_asks_for_an_hour_keeps_its_work_pending_and_is_taken_up_later() {
    let site = Site::start().await;
    let busy = || Reply::status(429).header("retry-after", "3600");
    let uris: Vec<String> = (0..40).map(|n| site.reply(&format!("/{n}.txt"), busy())).collect();
    let all: Vec<String> = uris.iter().map(|uri| resource(uri, "")).collect();
    let list = site.serve("/list.xml", urlset(LIST, &all));
    let copy = Destination::directory();
    copy.sync(&list).exits(3).complains(&["asked for a pause", "40 resources"], &["again"]);
    let asked = site.paths().iter().filter(|path| path.ends_with(".txt")).count();
    assert!(asked <= 8, "{asked} requests after the Source asked for patience");
    assert!(copy.listed().iter().all(|line| line["state"] == "pending"), "nothing is given up");

    // Run again too early, it still skips the origin, and does not reread its list.
    let before = site.paths().len();
    copy.sync(&list).exits(3);
    let more = site.paths().len() - before;
    assert!(more <= 8, "{more} requests although the hour is not over");
    assert!(!site.paths()[before..].contains(&"/list.xml".to_owned()));
}
