//! Unknown capabilities and entries are no failure.

use testkit::scripted::Reply;

use crate::common::{Destination, Run, Site, resource, thresher, urlset};

const CAPABILITIES: &str = "capability=\"capabilitylist\"";

/// A Capability List that offers an unknown document beside its Resource List, and the Source Description above it.
struct Case {
    site: Site,
    set: String,
    way_in: String,
}

impl Case {
    async fn new() -> Self {
        let site = Site::start().await;
        let documents = [
            resource(&site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&site.uri("/history.xml"), "capability=\"resourcelist-history\""),
        ];
        let set = site.serve("/caps.xml", urlset(CAPABILITIES, &documents));
        let entries = [
            resource(&set, ""),
            resource(&site.uri("/channel"), "capability=\"change-notification\""),
            resource(&site.uri("/more.xml"), "capability=\"framework-notification\""),
        ];
        let way_in = site.serve("/.well-known/resourcesync", urlset("capability=\"description\"", &entries));
        let case = Self { site, set, way_in };
        (0..20).for_each(|n| drop(case.site.serve(&format!("/{n}.txt"), n.to_string())));
        case.lists(1, 20);
        case
    }

    /// From this day on, this many resources are listed.
    fn lists(&self, day: u32, count: u32) {
        let entries: Vec<String> =
            (0..count).map(|n| resource(&self.site.uri(&format!("/{n}.txt")), "")).collect();
        let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
        self.site.serve("/list.xml", urlset(&md, &entries));
    }
}

#[tokio::test]
async fn beside_an_unknown_capability_absences_are_confirmed_and_an_audit_is_whole() {
    let case = Case::new().await;
    for way_in in [&case.set, &case.way_in] {
        case.lists(1, 20);
        let copy = Destination::directory();
        copy.sync(way_in).exits(0);
        case.lists(2, 19);
        assert_eq!(copy.sync(way_in).exits(0).count("absent"), 1);
        let audit = copy.run("audit", &[way_in, "--json"]).exits(1).json();
        assert_eq!((&audit["unread"], &audit["extra"]), (&0.into(), &1.into()), "{audit}");
        case.lists(3, 19);
        assert_eq!(copy.sync(way_in).exits(0).count("deleted"), 1);
        let audit = copy.run("audit", &[way_in, "--json"]).exits(0).json();
        assert_eq!(audit["unread"], 0, "{audit}");
    }
}

#[tokio::test]
async fn what_is_not_known_is_listed_and_not_asked_for() {
    let case = Case::new().await;
    let run = Run::of(thresher().args(["discover", &case.way_in, "--json"])).exits(0);
    let hints = run.json()["hints"].to_string();
    for offered in ["resourcelist-history", "change-notification", "framework-notification"] {
        assert!(hints.contains(offered) && hints.contains("left-alone"), "{offered}: {run}");
    }
    let shown = Run::of(thresher().args(["discover", &case.way_in])).exits(0).stdout;
    assert!(shown.contains("framework-notification"), "{shown}");
    for path in ["/channel", "/more.xml", "/history.xml"] {
        assert_eq!(case.site.requests_at(path), 0, "{path}");
    }
}

#[tokio::test]
async fn a_source_description_that_leads_to_other_documents_is_no_failure() {
    let case = Case::new().await;
    let archives = urlset("capability=\"archives\"", &[resource(&case.set, "")]);
    let entries = [resource(&case.set, ""), resource(&case.site.serve("/other.xml", archives), "")];
    case.site.serve("/.well-known/resourcesync", urlset("capability=\"description\"", &entries));
    let run = Run::of(thresher().args(["discover", &case.way_in, "--json"])).exits(0);
    assert_eq!(run.json()["sets"].as_array().map(Vec::len), Some(1), "{run}");
    Destination::directory().sync(&case.way_in).exits(0);
    // A Capability List that cannot be fetched still is a failure.
    case.site.reply("/caps.xml", Reply::status(404));
    let run = Run::of(thresher().args(["discover", &case.way_in]));
    assert_ne!(run.exit, Some(0), "{run}");
}

#[tokio::test]
async fn strictly_read_too_a_description_may_leave_out_what_it_leads_to() {
    let case = Case::new().await;
    Run::of(thresher().args(["inspect", "--strict", &case.way_in])).exits(0);
    Run::of(thresher().args(["inspect", "--strict", &case.set])).exits(0);
}
