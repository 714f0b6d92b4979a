//! Hyrax repositories.

use super::{CHANGES, Case, LIST, counted, dated, from_now, nothing_lost};
use crate::common::{Destination, resource, urlset};
use testkit::scripted::Reply;

#[tokio::test]
async fn oddity_07_change_list_newest_first() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let [gone, back] = &uris;
    let url = case.set(&uris.each_ref().map(|uri| resource(uri, "")), &[]);
    case.sync(&url).exits(0);
    let change =
        |uri, change, time| resource(uri, &format!("change=\"{change}\" datetime=\"2026-02-02T{time}\""));
    case.changes(
        CHANGES,
        &[
            change(back, "created", "04:00:00Z"),
            change(gone, "deleted", "03:00:00Z"),
            change(back, "deleted", "02:00:00Z"),
            change(gone, "updated", "01:00:00Z"),
        ],
    );
    let asked = case.site.requests_at("/1");
    let run = case.sync(&url).exits(0);
    counted(&run, &[("newest-first", 1), ("out-of-order", 3)]);
    assert_eq!(run.count("deleted"), 1, "{run}");
    assert_eq!(case.copy.state(gone).as_deref(), Some("deleted"));
    assert_eq!(case.site.requests_at("/1"), asked, "nobody asks for what was deleted last");
    case.holds(back, "/2");

    // Without zones too, the later one of two times is the later one.
    let change =
        |change, time| resource(back, &format!("change=\"{change}\" datetime=\"2026-03-03T{time}\""));
    case.changes(CHANGES, &[change("created", "12:00:00"), change("deleted", "11:00:00")]);
    for _ in 0..2 {
        nothing_lost(&case.sync(&url).exits(0));
        case.holds(back, "/2");
    }
}

#[tokio::test]
async fn oddity_08_change_list_without_end_that_begins_at_its_oldest_change_with_times_in_lastmod() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let [one, two] = &uris;
    let list = uris.each_ref().map(|uri| resource(uri, ""));
    let url = case.set(&list, &[]);
    case.sync(&url).exits(0);

    case.site.serve("/1", "new");
    let updated = dated(one, "2026-02-01T00:00:00Z", "change=\"updated\"");
    case.changes("capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"", std::slice::from_ref(&updated));
    let run = case.sync(&url).exits(0);
    counted(&run, &[]);
    assert_eq!((run.count("stored"), run.count("gaps")), (1, 0), "{run}");
    case.holds(one, "new");
    let asked = case.site.requests_at("/1");
    assert_eq!(case.sync(&url).exits(0).count("unchanged"), 1);
    assert_eq!(case.site.requests_at("/1"), asked, "the same change is applied once");

    // The list keeps its latest changes only, so it may have dropped others in between: that is a gap.
    case.list("capability=\"resourcelist\" at=\"2026-03-02T00:00:00Z\"", &list);
    case.site.serve("/2", "new");
    let later = dated(one, "2026-03-01T00:00:00Z", "change=\"updated\"");
    case.changes("capability=\"changelist\" from=\"2026-03-01T00:00:00Z\"", &[later]);
    let run = case.sync(&url).exits(0);
    assert_eq!(run.count("gaps"), 1, "{run}");
    case.holds(two, "new");
    assert_eq!(case.sync(&url).exits(0).count("gaps"), 0);
}

#[tokio::test]
async fn oddity_09_deletions_that_nobody_tells_are_found_against_the_resource_list() {
    let case = Case::new().await;
    let paths: [String; 20] = std::array::from_fn(|n| format!("/{n:02}"));
    let uris = case.bodies(paths.each_ref().map(String::as_str));
    let entries = uris.each_ref().map(|uri| dated(uri, "2025-01-01", "length=\"3\""));
    let url = case.set(&entries, &[]);
    case.sync(&url).exits(0);
    let list = |day: u32| {
        case.list(&LIST.replace("01-01", &format!("01-{day:02}")), &entries[1..]);
    };
    list(2);
    nothing_lost(&case.sync(&url).exits(0));
    case.holds_only(&uris);

    let run = case.sync_with(&url, &["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 1), "{run}");
    case.holds_only(&uris);
    list(3);
    let run = case.sync_with(&url, &["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (1, 0), "{run}");
    assert_eq!(case.copy.state(&uris[0]).as_deref(), Some("deleted"));
    assert_eq!(case.copy.present().len(), 19);
}

#[tokio::test]
async fn oddity_10_created_and_updated_say_no_more_than_that_there_is_a_version() {
    let case = Case::new().await;
    let [held, fresh] = case.bodies(["/held", "/fresh"]);
    let url = case.set(&[resource(&held, "")], &[]);
    case.sync(&url).exits(0);
    case.site.serve("/held", "new");
    let change =
        |uri, change| resource(uri, &format!("change=\"{change}\" datetime=\"2026-02-01T00:00:00Z\""));
    case.changes(CHANGES, &[change(&held, "created"), change(&fresh, "updated")]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[]);
    assert_eq!((run.count("stored"), run.count("failed")), (2, 0), "{run}");
    case.holds(&held, "new");
    case.holds(&fresh, "/fresh");
}

#[tokio::test]
async fn oddity_11_a_web_page_is_held_as_it_is_and_nothing_is_negotiated() {
    let case = Case::new().await;
    let page = "<!DOCTYPE html>\n<html><body>A thesis<br></body></html>\n";
    let html = Reply::ok(page).header("content-type", "text/html;charset=utf-8").header("vary", "accept");
    let uri = case.site.reply("/concern/theses/1", html);
    let about = case.site.serve("/concern/theses/1.ttl", "<> a <Thesis> .");
    let link = format!("<rs:ln rel=\"describedby\" href=\"{about}\" type=\"text/turtle\"/></url>");
    let url = case.list(LIST, &[resource(&uri, "").replace("</url>", &link)]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[]);
    case.holds(&uri, page);
    let accepted = case.site.headers_at("/concern/theses/1", "accept");
    assert!(accepted.iter().flatten().all(|accept| accept == "*/*"), "{accepted:?}");
    assert_eq!(case.site.requests_at("/concern/theses/1.ttl"), 0, "a link is no entry");
    assert_eq!(case.copy.ls().len(), 1);
}

#[tokio::test]
async fn oddity_12_a_list_dated_by_the_request_confirms_no_absence_soon_after() {
    let case = Case::new().await;
    let paths: [String; 20] = std::array::from_fn(|n| format!("/{n:02}"));
    let uris = case.bodies(paths.each_ref().map(String::as_str));
    let entries = uris.each_ref().map(|uri| dated(uri, "2025-01-01", "length=\"3\""));
    let list = |minutes, entries: &[String]| {
        let md = format!("capability=\"resourcelist\" at=\"{}\"", from_now(minutes));
        case.list(&md, entries)
    };
    let url = case.site.uri("/list.xml");
    let sync = |copy: &Destination| {
        let run = copy.sync(&url).exits(0);
        (run.count("deleted"), run.count("absent"))
    };
    list(-240, &entries);
    let other = Destination::directory();
    assert_eq!((sync(&case.copy), sync(&other)), ((0, 0), (0, 0)));
    // Each time it looks like a later list, but all of them share a passing fault.
    for _ in 0..3 {
        list(0, &entries[1..]);
        assert_eq!(sync(&case.copy), (0, 1));
    }
    case.holds_only(&uris);

    // A list of the future does not, either: it may have been made at any time.
    list(-180, &entries[1..]);
    assert_eq!(sync(&other), (0, 1));
    list(300, &entries[1..]);
    assert_eq!(sync(&other), (0, 0));
    // After an hour of absence it is deleted.
    list(0, &entries[1..]);
    assert_eq!(sync(&other), (1, 0));
    assert_eq!(other.state(&uris[0]).as_deref(), Some("deleted"));
    assert_eq!(other.present().len(), 19);
}

#[tokio::test]
async fn oddity_13_more_than_fifty_thousand_entries_in_one_file() {
    let case = Case::new().await;
    let last = case.bodies(["/50000", "/50001", "/50002"]);
    let entry = |n: u32| resource(&case.site.uri(&format!("/{n}")), "length=\"6\"");
    let url = case.site.serve("/list.xml", urlset(LIST, &(0..50_003).map(entry).collect::<Vec<_>>()));
    // Entries beyond the limit count like the others.
    let run = case.sync_with(&url, &["--include", "/5000[0-2]$"]).exits(0);
    counted(&run, &[("too-many-entries", 1)]);
    assert_eq!((run.count("listed"), run.count("stored"), run.count("failed")), (3, 3, 0), "{run}");
    case.holds_only(&last);
}
