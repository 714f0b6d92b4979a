//! A lastmod is no time of change.

use crate::common::{Destination, Site, resource, urlset};

const LIST: &str = "capability=\"resourcelist\" at=\"2026-02-01T00:00:00Z\"";
const CHANGES: &str = "capability=\"changelist\" from=\"2026-01-15T00:00:00Z\"";

/// A Source of one stored resource, with a Change List that began before its Resource List.
struct Case {
    site: Site,
    copy: Destination,
    way_in: String,
}

impl Case {
    async fn new() -> Self {
        let site = Site::start().await;
        let documents = [
            resource(&site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&site.uri("/changes.xml"), "capability=\"changelist\""),
        ];
        let way_in = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &documents));
        let held = site.serve("/held", "old");
        site.serve("/list.xml", urlset(LIST, &[resource(&held, "")]));
        let case = Self { site, copy: Destination::directory(), way_in };
        case.changes(&[]);
        case.copy.sync(&case.way_in).exits(0);
        case
    }

    fn changes(&self, entries: &[String]) {
        self.site.serve("/changes.xml", urlset(CHANGES, entries));
    }
}

/// A change with a `lastmod` and no `datetime`.
fn change(uri: &str, change: &str, lastmod: &str) -> String {
    let entry = resource(uri, &format!("change=\"{change}\""));
    entry.replace("</loc>", &format!("</loc><lastmod>{lastmod}</lastmod>"))
}

#[tokio::test]
async fn what_was_created_with_an_old_lastmod_is_fetched() {
    let case = Case::new().await;
    // Before the Change List begins, and between that and the Resource List.
    for (path, lastmod) in [("/old", "2000-01-01T01:01:00Z"), ("/new", "2026-01-20T00:00:00Z")] {
        let uri = case.site.serve(path, path);
        case.changes(&[change(&uri, "created", lastmod)]);
        let run = case.copy.sync(&case.way_in).exits(0);
        assert_eq!(run.count("stored"), 1, "{lastmod}: {run}");
        assert_eq!(case.copy.cat(&uri), path.as_bytes());
        // The same list read again requests nothing new.
        let asked = case.site.requests_at(path);
        case.copy.sync(&case.way_in).exits(0);
        assert_eq!(case.site.requests_at(path), asked, "{lastmod}");
    }
}

#[tokio::test]
async fn of_two_changes_without_a_datetime_the_later_in_the_list_counts() {
    let case = Case::new().await;
    let uri = case.site.uri("/held");
    case.site.serve("/held", "put back");
    let updated = |lastmod| change(&uri, "updated", lastmod);
    case.changes(&[updated("2026-03-02T00:00:00Z"), updated("2026-03-01T00:00:00Z")]);
    let run = case.copy.sync(&case.way_in).exits(0);
    assert_eq!(run.json()["quirks"].get("out-of-order"), None, "{run}");
    assert_eq!(case.copy.cat(&uri), b"put back");
}

#[tokio::test]
async fn a_deletion_with_an_old_lastmod_is_no_silent_loss_and_no_guess() {
    let case = Case::new().await;
    let uri = case.site.uri("/held");
    // The Resource List contained it later than it was modified, so the resource itself is requested.
    case.changes(&[change(&uri, "deleted", "2026-01-20T00:00:00Z")]);
    case.copy.sync(&case.way_in).exits(0);
    assert_eq!(case.copy.state(&uri).as_deref(), Some("present"));

    case.changes(&[change(&uri, "deleted", "2000-01-01T00:00:00Z")]);
    case.copy.sync(&case.way_in).exits(0);
    assert_eq!(case.copy.state(&uri).as_deref(), Some("deleted"));
}
