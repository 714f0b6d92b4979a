//! Sites made with the rails-sitemap gem.

use super::{Case, counted, nothing_lost};
use crate::common::{resource, urlset};

#[tokio::test]
async fn oddity_31_offset_in_at_unclosed_links_and_later_no_metadata_at_all() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let [one, two] = &uris;
    let list = uris.each_ref().map(|uri| resource(uri, "length=\"2\""));
    let md = "capability=\"resourcelist\" at=\"2026-01-02T00:30:00+01:00\"";
    case.list(md, &list);
    let changes = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    case.changes(changes, &[]);
    let set = case.capabilities(&[("/list.xml", "resourcelist"), ("/changes.xml", "changelist")]);
    let run = case.sync(&set).exits(0);
    counted(&run, &[]);
    // Half an hour past midnight is half past eleven in UTC, so the list already contains the first of these two
    // changes.
    case.site.serve("/1", "new");
    case.site.serve("/2", "new");
    let updated = |uri, time| resource(uri, &format!("change=\"updated\" datetime=\"2026-01-01T{time}Z\""));
    case.changes(changes, &[updated(one, "23:15:00"), updated(two, "23:45:00")]);
    assert_eq!(case.sync(&set).exits(0).count("stored"), 1);
    case.holds(one, "/1");
    case.holds(two, "new");

    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let list = uris.each_ref().map(|uri| resource(uri, "length=\"2\""));
    let url = case.list(md, &list);
    case.sync(&url).exits(0);
    let unclosed =
        urlset(md, &list[..1]).replacen("  <url>", "  <rs:ln rel=\"up\" href=\"/caps.xml\">\n  <url>", 1);
    case.site.serve("/list.xml", unclosed);
    let run = case.sync(&url);
    assert!(matches!(run.exit, Some(1 | 3)), "{run}");
    let run = run.says(&[&url, "not well-formed", "line 6", "</rs:ln>"]);
    case.holds_only(&uris);
    assert!(!run.stderr.contains("deleted by"), "{run}");

    // What remains is a sitemap, which does not declare itself complete.
    for _ in 0..2 {
        case.site.serve("/list.xml", urlset("", &[resource(&uris[0], "")]));
        let run = case.sync_with(&url, &["--absent", "delete"]).exits(0);
        counted(&run, &[("no-capability", 1)]);
        nothing_lost(&run);
        case.holds_only(&uris);
    }
}
