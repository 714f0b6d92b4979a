//! DSpace repositories with ResourceSyncJava.

use super::{CHANGES, Case, LIST, counted, from_now, index_of, nothing_lost};
use crate::common::{resource, urlset};

#[tokio::test]
async fn oddity_26_local_time_written_with_a_z_hides_no_change() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let [one, two] = &uris;
    let url = case.capabilities(&[("/list.xml", "resourcelist"), ("/changes.xml", "changelist")]);
    let list = uris.each_ref().map(|uri| resource(uri, ""));
    // East of Greenwich: the list was made this minute, but its time is two hours ahead.
    case.list(&format!("capability=\"resourcelist\" at=\"{}\"", from_now(120)), &list);
    let from = format!("capability=\"changelist\" from=\"{}\"", from_now(-600));
    case.changes(&from, &[]);
    let run = case.sync(&url).exits(0);
    assert_eq!(run.json()["quirks"]["future-time"], 1, "{run}");

    // A change of the hours in between does not count as contained in the list.
    case.site.serve("/1", "new");
    let updated = |uri, time: &str| resource(uri, &format!("change=\"updated\" datetime=\"{time}\""));
    case.changes(&from, &[updated(one, &from_now(-1))]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[]);
    assert_eq!(run.count("stored"), 1, "{run}");
    case.holds(one, "new");

    // A change of the far future is applied, hides no later one, and does not advance the position.
    case.site.serve("/2", "new");
    case.changes(&from, &[updated(one, &from_now(-1)), updated(two, "2999-01-01T00:00:00Z")]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("future-time", 1)]);
    case.holds(two, "new");
    case.site.serve("/2", "newer");
    case.changes(&from, &[updated(one, &from_now(-1)), updated(two, &from_now(0))]);
    assert_eq!(case.sync(&url).exits(0).count("stored"), 1);
    case.holds(two, "newer");

    // Such a time deletes nothing that may have come back since.
    let deleted = resource(two, "change=\"deleted\" datetime=\"2999-01-01T00:00:00Z\"");
    case.changes(&from, &[deleted]);
    nothing_lost(&case.sync(&url).exits(0));
    case.holds(two, "newer");
}

#[tokio::test]
async fn oddity_27_capability_named_changelistindex() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let [one, two] = &uris;
    case.list(LIST, &[resource(one, ""), resource(two, "")]);
    let day = urlset(CHANGES, &[resource(one, "change=\"deleted\" datetime=\"2026-01-02T00:00:00Z\"")]);
    let day = case.site.serve("/day.xml", day);
    let md = "capability=\"changelistindex\" from=\"2026-01-01T00:00:00Z\"";
    case.site.serve("/changes.xml", index_of(md, &[resource(&day, "from=\"2026-01-01T00:00:00Z\"")]));
    let url = case.capabilities(&[("/list.xml", "resourcelist"), ("/changes.xml", "changelistindex")]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("odd-capability-name", 2), ("entry-without-metadata", 2)]);
    assert_eq!(case.site.requests_at("/day.xml"), 1, "the index is followed: {run}");
    case.holds(two, "/2");
    assert_ne!(case.copy.state(one).as_deref(), Some("present"), "what the part tells is applied");
    assert_eq!(run.count("gaps"), 0, "{run}");
}

#[tokio::test]
async fn oddity_28_empty_describedby_links() {
    let case = Case::new().await;
    let [uri] = case.bodies(["/1"]);
    let links = "<rs:ln rel=\"describedby\" href=\"\"/><rs:ln rel=\"describedby\"/></url>";
    let url = case.list(LIST, &[resource(&uri, "length=\"2\"").replace("</url>", links)]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("link-without-target", 2), ("empty-value", 1)]);
    case.holds_only(&[uri]);
    assert_eq!(case.site.paths().len(), 2, "a link without target leads nowhere: {:?}", case.site.paths());
}
