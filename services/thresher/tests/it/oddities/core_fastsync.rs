//! CORE FastSync.

use super::{Case, LIST, counted, inspect, nothing_lost};
use testkit::scripted::Reply;

use crate::common::{Destination, Package, resource, urlset};

const XZ: &str = "type=\"application/x-xz\"";

/// The manifest's description of a package of changes whose capability the Source never states.
const MANIFEST: &str = "capability=\"changedump-manifest\" from=\"2020-06-01T00:00:00\"";

/// Serves a package of changes, each a name, a change and a time without zone. Returns its URI.
async fn package(case: &Case, path: &str, changes: &[(&str, &str, &str)]) -> String {
    let mut package = Package::with(MANIFEST);
    for (name, change, time) in changes {
        let uri = case.site.uri(name);
        package = match *change {
            "deleted" => package.deleted(&uri, time),
            change => package.changed(&uri, change, time, format!("{name} {time}")),
        };
    }
    case.site.reply(path, Reply::ok(package.tar_xz().await))
}

#[tokio::test]
async fn oddity_01_change_list_of_dump_packages_without_change_time_or_link_upwards() {
    let case = Case::new().await;
    let first = [("/a", "created", "2020-06-01T10:00:00"), ("/b", "created", "2020-06-01T11:00:00")];
    let second = [("/b", "deleted", "2020-06-03T10:00:00"), ("/c", "created", "2020-06-03T11:00:00")];
    let packages = [
        package(&case, "/2020-06-01.tar.xz", &first).await,
        package(&case, "/2020-06-03.tar.xz", &second).await,
    ];
    let entries = packages.each_ref().map(|uri| resource(uri, XZ));
    let url = case.changes("capability=\"changelist\" from=\"2020-06-01T00:00:00Z\"", &entries);
    let run = case.sync(&url).exits(0);
    assert_eq!(run.json()["quirks"]["package-in-change-list"], 2, "{run}");
    case.holds(&case.site.uri("/a"), "/a 2020-06-01T10:00:00");
    case.holds(&case.site.uri("/c"), "/c 2020-06-03T11:00:00");
    assert_eq!(case.copy.present().len(), 2, "{:?}", case.copy.ls());
    assert_eq!(case.site.requests_at("/a"), 0, "what a package has is not asked for");
}

/// The package is declared to have many gigabytes. It is requested, and the response is checked against the
/// declaration.
#[tokio::test]
async fn oddity_02_packages_are_xz_archives_of_many_gigabytes() {
    let case = Case::new().await;
    let [package, own] = case.bodies(["/all.tar.xz", "/1.txt"]);
    let dump = [resource(&package, &format!("{XZ} length=\"37000000000\""))];
    case.site.serve("/dump.xml", urlset("capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"", &dump));
    let url = case.capabilities(&[("/dump.xml", "resourcedump")]);
    case.sync(&url).exits(1).says(&["/all.tar.xz", "37000000000"]);
    case.holds_only(&[]);
    assert_eq!(inspect(&case.site.uri("/dump.xml"))[1]["length"], 37_000_000_000_u64);

    case.list(LIST, &[resource(&own, "")]);
    let url = case.capabilities(&[("/dump.xml", "resourcedump"), ("/list.xml", "resourcelist")]);
    let asked = case.site.requests_at("/all.tar.xz");
    nothing_lost(&case.sync(&url).exits(0));
    case.holds_only(&[own]);
    assert_eq!(case.site.requests_at("/all.tar.xz"), asked, "for a single resource no package is received");
}

#[tokio::test]
async fn oddity_03_times_without_zone_never_delete_by_a_guess() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2", "/3", "/4", "/5"]);
    let [updated, kept, gone, before, after] = &uris;
    let md = "capability=\"resourcelist\" at=\"2026-01-02T12:00:00Z\"";
    let url = case.set(&[], &[]);
    case.list(md, &uris.each_ref().map(|uri| resource(uri, "")));
    case.changes("capability=\"changelist\" from=\"2026-01-02T12:00:00Z\"", &[]);
    case.sync(&url).exits(0);

    let change = |uri, change, time| resource(uri, &format!("change=\"{change}\" datetime=\"{time}\""));
    // Whether the deletions of half past one were before noon depends on the time zone of the Source.
    let changes = [
        change(before, "deleted", "2025-12-30T00:00:00"),
        change(kept, "deleted", "2026-01-02 13:30:00"),
        change(gone, "deleted", "2026-01-02T13:30:00"),
        change(updated, "updated", "2026-01-02T20:36:26.441694"),
        change(after, "deleted", "2026-01-04T00:00:00"),
    ];
    case.changes("capability=\"changelist\" from=\"2025-12-30T00:00:00\"", &changes);
    case.site.serve("/1", "new");
    case.site.reply("/3", Reply::status(404));
    let asked = case.site.requests_at("/5");
    let run = case.sync(&url).exits(0);
    counted(&run, &[("zone-less-time", 6), ("space-for-t", 1)]);
    case.holds(updated, "new");
    case.holds(kept, "/2");
    case.holds(before, "/4");
    assert_eq!(case.copy.state(gone).as_deref(), Some("deleted"), "the resource itself confirms it");
    assert_eq!(
        case.copy.state(after).as_deref(),
        Some("deleted"),
        "certainly later, wherever the Source lies"
    );
    assert_eq!(case.site.requests_at("/5"), asked, "so nobody asks for it");
    assert_eq!(run.count("deleted"), 2, "{run}");
    // Read again, the list has nothing new.
    let again = case.sync(&url).exits(0);
    assert_eq!((again.count("deleted"), again.count("stored")), (0, 0), "{again}");
    case.holds(kept, "/2");
}

#[tokio::test]
async fn oddity_04_packages_in_no_order_with_intervals_that_overlap_or_are_empty() {
    let case = Case::new().await;
    let of_day = [("/a", "updated", "2020-06-03T10:00:00")];
    let of_week = [
        ("/a", "created", "2020-06-01T10:00:00"),
        ("/b", "created", "2020-06-02T10:00:00"),
        ("/a", "updated", "2020-06-03T10:00:00"),
        ("/b", "deleted", "2020-06-06T10:00:00"),
    ];
    let week = package(&case, "/week.tar.xz", &of_week).await;
    let day = package(&case, "/day.tar.xz", &of_day).await;
    let none = package(&case, "/none.tar.xz", &[]).await;
    let entry =
        |uri: &str, from, until| resource(uri, &format!("from=\"2020-06-{from}\" until=\"2020-06-{until}\""));
    let entries = [entry(&week, "01", "08"), entry(&day, "03", "04"), entry(&none, "02", "02")];
    let url = case.changes("capability=\"changelist\" from=\"2020-06-01T00:00:00Z\"", &entries);
    let run = case.sync(&url).exits(0);
    let quirks = &run.json()["quirks"];
    for (name, times) in [
        ("package-in-change-list", 3),
        ("overlapping-intervals", 2),
        ("empty-interval", 1),
        ("out-of-order", 1),
    ] {
        assert_eq!(quirks[name], times, "{name}: {run}");
    }
    case.holds(&case.site.uri("/a"), "/a 2020-06-03T10:00:00");
    assert_eq!(case.copy.present().len(), 1, "{:?}", case.copy.ls());
}

#[tokio::test]
async fn oddity_05_colons_and_names_encoded_twice_are_asked_for_as_written() {
    let case = Case::new().await;
    let paths =
        ["/oai:e.org:1:2.pdf", "/aHR0cDovL2Uub3JnLzE%3D%3D.pdf", "/aHR0cDovL2Uub3JnLzE%253D%253D.pdf"];
    let uris = case.bodies(paths);
    let url = case.list(LIST, &uris.each_ref().map(|uri| resource(uri, "")));
    let run = case.sync(&url).exits(0);
    counted(&run, &[("entry-without-metadata", 3)]);
    assert_eq!(paths.map(|path| case.site.requests_at(path)), [1, 1, 1]);
    case.holds_only(&uris);
    assert_eq!(case.copy.view().len(), 3, "each has a file of its own");
}

#[tokio::test]
async fn oddity_06_blanks_round_loc_camel_case_relations_and_paths_with_a_slash() {
    let case = Case::new().await;
    let [own, about] = case.bodies(["/1.pdf", "/1.json"]);
    let entry = resource(&own, "length=\"6\"")
        .replace("<loc>", "<loc>\n    ")
        .replace("</loc>", "\n  </loc>")
        .replace(
            "</url>",
            &format!("<rs:ln rel=\"describedBy\" href=\"{about}\" path=\"57d/1.json\"/></url>"),
        );
    let url = case.list(LIST, std::slice::from_ref(&entry));
    let run = case.sync(&url).exits(0);
    counted(&run, &[("whitespace-in-loc", 1), ("relation-case", 1)]);
    case.holds_only(&[own]);

    // A manifest alone is a part of a package, and no entry URL.
    let manifest = "capability=\"resourcedump-manifest\" at=\"2020-06-01T00:00:00Z\"";
    let entry = entry.replace("length=\"6\"", "path=\"/57d/1.pdf\"");
    let url = case.site.serve("/manifest.xml", urlset(manifest, &[entry]));
    Destination::directory()
        .sync(&url)
        .exits(3)
        .complains(&[&url, "resourcedump-manifest"], &["resource list"]);
    let lines = inspect(&url);
    assert_eq!(lines[0]["document"], "resourcedump-manifest");
    assert_eq!(
        (&lines[1]["path"], &lines[1]["links"][0]["path"]),
        (&"/57d/1.pdf".into(), &"57d/1.json".into())
    );
}
