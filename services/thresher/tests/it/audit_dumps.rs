//! `thresher audit` of dumps: it compares packages by their manifests and receives no package (docs/adr/0026).

use crate::common::{Destination, Inside, Package, Run, Site, package, resource, urlset};
use fixity::Computed;
use testkit::files::{File, FileServer, Ranges};
use testkit::scripted::Reply;

const FIRST: &str = "2026-01-01T00:00:00Z";
const SECOND: &str = "2026-01-02T00:00:00Z";
/// Bytes of a member. An audit reads the manifest without receiving them.
const LARGE: usize = 2 << 20;

/// A Source of dumps, whose packages are on a server of their own, and a copy of it.
struct Case {
    site: Site,
    files: FileServer,
    copy: Destination,
}

impl Case {
    async fn new() -> Self {
        let files = FileServer::start().await.unwrap();
        Self { site: Site::start().await, files, copy: Destination::directory() }
    }

    fn uri(&self, name: &str) -> String {
        self.site.uri(&format!("/{name}"))
    }

    /// Serves a package and returns its entry in a dump.
    fn package(&self, path: &str, bytes: Vec<u8>, more: &str, ranges: Ranges) -> String {
        let etag = format!("\"{}\"", Computed::of(&bytes).sha256());
        let entry = package(&self.files.uri(path), &bytes, more);
        self.files.serve(path, File::new(bytes, &etag).with(ranges));
        entry
    }

    /// Serves a Resource Dump of a moment.
    fn dump(&self, at: &str, packages: &[String]) -> String {
        let md = format!("capability=\"resourcedump\" at=\"{at}\"");
        self.site.serve("/dump.xml", urlset(&md, packages))
    }

    /// Serves a Change Dump, and the Capability List of both.
    fn changes(&self, packages: &[String]) -> String {
        let md = format!("capability=\"changedump\" from=\"{FIRST}\"");
        let changes = self.site.serve("/changes.xml", urlset(&md, packages));
        let links = [
            resource(&self.uri("dump.xml"), "capability=\"resourcedump\""),
            resource(&changes, "capability=\"changedump\""),
        ];
        self.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &links))
    }

    /// The requests at the server of packages, without its robots.txt, by path and status.
    fn asked(&self) -> Vec<(String, u16)> {
        let asked = self.files.asked().into_iter().map(|asked| (asked.path, asked.status));
        asked.filter(|(path, _)| path != "/robots.txt").collect()
    }

    fn audit(&self, url: &str, more: &[&str]) -> Run {
        self.copy.run("audit", &[&[url, "--json"], more].concat())
    }
}

const COUNTS: [&str; 7] =
    ["matching", "missing", "outdated", "mismatched", "extra", "unread", "not_compared"];

#[track_caller]
fn found(run: &Run, expected: [u64; 7]) {
    assert_eq!(COUNTS.map(|name| run.count(name)), expected, "{COUNTS:?} {run}");
}

#[tokio::test]
async fn a_dump_whose_packages_are_held_is_audited_without_a_request_to_where_they_lie() {
    let case = Case::new().await;
    let first = Package::of_resources(FIRST)
        .holds(&case.uri("a"), "aaa")
        .deflated()
        .holds(&case.uri("b"), "b".repeat(5_000));
    let second = Package::of_resources(FIRST).holds(&case.uri("c"), "c");
    let url = case.dump(
        FIRST,
        &[
            case.package("/1.zip", first.zip(), "", Ranges::Given),
            case.package("/2.zip", second.zip(), "", Ranges::Unknown),
        ],
    );
    case.copy.sync(&url).exits(0);
    let asked = case.asked();
    let sent = case.files.sent();
    let run = case.audit(&url, &[]).exits(0);
    found(&run, [3, 0, 0, 0, 0, 0, 0]);
    assert_eq!((run.count("listed"), run.count("held")), (3, 3), "{run}");
    assert_eq!((case.asked(), case.files.sent()), (asked, sent));
    assert_eq!(case.site.requests_at("/a"), 0);

    // A resource without a record is missing, because the stored package lists it. It has a URL of its own.
    let inside = Inside::of(&case.copy, &url).await;
    inside.edit(&case.uri("c"), |record| record.bitstream = None).await;
    inside.close().await;
    found(&case.audit(&url, &[]).exits(1), [2, 1, 0, 0, 0, 0, 0]);
    case.site.serve("/c", "c");
    let run = case.audit(&url, &["--repair"]).exits(0);
    assert_eq!((run.count("queued"), run.count("stored"), case.site.requests_at("/c")), (1, 1, 1), "{run}");
    assert_eq!(case.files.sent(), sent);
}

#[tokio::test]
async fn each_kind_of_difference_is_found_in_packages_that_lie_elsewhere_by_their_ends_alone() {
    let case = Case::new().await;
    let large = vec![b'x'; LARGE];
    let first = Package::of_resources(FIRST)
        .holds(&case.uri("edited"), "edited")
        .holds(&case.uri("gone"), "gone")
        .holds(&case.uri("large"), &large)
        .holds(&case.uri("stale"), "stale");
    let url = case.dump(FIRST, &[case.package("/1.zip", first.zip(), "", Ranges::Given)]);
    case.copy.sync(&url).exits(0);
    let inside = Inside::of(&case.copy, &url).await;
    inside
        .edit(&case.uri("edited"), |record| record.bitstream.as_mut().unwrap().computed = Computed::of(b"x"))
        .await;
    inside.close().await;

    let second = Package::of_resources(SECOND)
        .holds(&case.uri("edited"), "edited")
        .holds(&case.uri("fresh"), "fresh")
        .holds(&case.uri("large"), &large)
        .holds(&case.uri("stale"), "a later version");
    case.dump(SECOND, &[case.package("/2.zip", second.zip(), "", Ranges::Given)]);
    let asked = case.asked().len();
    let sent = case.files.sent();
    let run = case.audit(&url, &["--list"]).exits(1);
    found(&run, [1, 1, 1, 1, 1, 0, 0]);
    let asked = case.asked().split_off(asked);
    assert!(asked.iter().all(|(path, status)| path == "/2.zip" && *status == 206), "{asked:?}");
    let looked = case.files.sent() - sent;
    assert!(looked < LARGE as u64 / 4, "{looked} bytes for a manifest, in {} requests", asked.len());
    let names = ["edited", "fresh", "gone", "large", "stale"].map(|name| format!("/{name}"));
    assert_eq!(names.clone().map(|path| case.site.requests_at(&path)), [0; 5]);

    for (path, body) in [("/edited", "edited"), ("/fresh", "fresh"), ("/stale", "a later version")] {
        case.site.serve(path, body);
    }
    let run = case.audit(&url, &["--repair", "--absent", "delete", "--max-deletes", "100%"]).exits(0);
    assert_eq!((run.count("queued"), run.count("stored"), run.count("repaired")), (4, 3, 1), "{run}");
    assert_eq!(names.map(|path| case.site.requests_at(&path)), [1, 1, 0, 0, 1]);
    assert_eq!(case.copy.state(&case.uri("gone")).as_deref(), Some("deleted"));
    assert_eq!(case.copy.cat(&case.uri("stale")), b"a later version");
    found(&case.audit(&url, &[]).exits(0), [4, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_copy_of_the_manifest_is_read_instead_of_the_package() {
    let case = Case::new().await;
    let first = Package::of_resources(FIRST).holds(&case.uri("a"), "a");
    let url = case.dump(FIRST, &[case.package("/1.zip", first.zip(), "", Ranges::Given)]);
    case.copy.sync(&url).exits(0);
    let second = Package::of_resources(SECOND).holds(&case.uri("a"), "a").holds(&case.uri("b"), "b");
    let copy = case.site.serve("/2.xml", second.manifest());
    let entry = case.package("/2.zip", second.zip(), "", Ranges::Given);
    let link = format!("<rs:ln rel=\"contents\" href=\"{copy}\"/></url>");
    case.dump(SECOND, &[entry.replace("</url>", &link)]);
    let asked = case.asked();
    found(&case.audit(&url, &[]).exits(1), [1, 1, 0, 0, 0, 0, 0]);
    assert_eq!((case.asked(), case.site.requests_at("/2.xml")), (asked, 1));

    // If the copy is no manifest, the package is read.
    case.site.serve("/2.xml", urlset(&format!("capability=\"resourcelist\" at=\"{SECOND}\""), &[]));
    found(&case.audit(&url, &[]).exits(1), [1, 1, 0, 0, 0, 0, 0]);
    assert!(case.asked().iter().any(|asked| *asked == ("/2.zip".to_owned(), 206)));
}

#[tokio::test]
async fn what_a_copy_of_the_manifest_says_before_it_breaks_off_counts_only_as_the_package_says_it() {
    let case = Case::new().await;
    let first = Package::of_resources(FIRST).holds(&case.uri("a"), "a");
    let url = case.dump(FIRST, &[case.package("/1.zip", first.zip(), "", Ranges::Given)]);
    case.copy.sync(&url).exits(0);
    // The same form again: the settings that it was filled from have changed.
    let other = Package::of_resources(SECOND).holds(&case.uri("a"), "b").holds(&case.uri("ghost"), "g");
    let whole = other.manifest();
    let copy = case.site.serve("/2.xml", whole.strip_suffix("</urlset>\n").expect("its end"));
    let second = Package::of_resources(SECOND).holds(&case.uri("a"), "a").holds(&case.uri("b"), "b").zip();
    let entry = case.package("/2.zip", second.clone(), "", Ranges::Given);
    let link = format!("<rs:ln rel=\"contents\" href=\"{copy}\"/></url>");
    case.dump(SECOND, &[entry.replace("</url>", &link)]);
    let run = case.audit(&url, &["--list"]).exits(1);
    found(&run, [1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(run.count("listed"), 2, "{run}");
    assert!(!run.stdout.contains("ghost"), "{run}");
    assert_eq!(case.site.requests_at("/2.xml"), 1);

    // If the package cannot be read, only the copy's entries count. Nothing is concluded about the rest.
    let entry = case.package("/3.zip", second, "", Ranges::Unknown);
    case.dump(SECOND, &[entry.replace("</url>", &link)]);
    let run = case.audit(&url, &[]).exits(1);
    found(&run, [0, 1, 1, 0, 0, 1, 0]);
    assert_eq!(run.count("listed"), 2, "{run}");
}

#[tokio::test]
async fn changes_in_packages_after_the_dump_count_with_their_deletions_and_earlier_ones_are_not_looked_at() {
    let case = Case::new().await;
    let base = Package::of_resources(FIRST)
        .holds(&case.uri("a"), "a1")
        .holds(&case.uri("b"), "b1")
        .holds(&case.uri("c"), "c1");
    case.dump(FIRST, &[case.package("/base.zip", base.zip(), "", Ranges::Given)]);
    let url = case.changes(&[]);
    case.copy.sync(&url).exits(0);
    found(&case.audit(&url, &[]).exits(0), [3, 0, 0, 0, 0, 0, 0]);

    let span = |from: &str, until: &str| format!("from=\"{from}\" until=\"{until}\"");
    let later =
        Package::of_changes(SECOND, "2026-01-03T00:00:00Z").deleted(&case.uri("d"), "2026-01-02T01:00:00Z");
    let changes = Package::of_changes(FIRST, SECOND)
        .changed(&case.uri("a"), "updated", "2026-01-01T01:00:00Z", "a2")
        .deleted(&case.uri("b"), "2026-01-01T02:00:00Z")
        .changed(&case.uri("d"), "created", "2026-01-01T03:00:00Z", "d1")
        .changed(&case.uri("e"), "created", "2026-01-01T04:00:00Z", "e1");
    let old = package(
        &case.files.uri("/old.zip"),
        b"nobody asks for it",
        &span("2025-12-01T00:00:00Z", "2025-12-31T00:00:00Z"),
    );
    let packages = [
        case.package("/2.zip", later.zip(), &span(SECOND, "2026-01-03T00:00:00Z"), Ranges::Given),
        case.package("/1.zip", changes.zip(), &span(FIRST, SECOND), Ranges::Given),
        old,
    ];
    case.changes(&packages);
    let run = case.audit(&url, &[]).exits(1);
    found(&run, [1, 1, 1, 0, 1, 0, 0]);
    assert_eq!(run.count("gaps"), 0, "{run}");
    assert!(case.asked().iter().all(|(path, _)| path != "/old.zip"));

    case.site.serve("/a", "a2");
    case.site.serve("/e", "e1");
    let run = case.audit(&url, &["--repair"]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (2, 1), "{run}");
    assert_eq!(case.copy.state(&case.uri("b")).as_deref(), Some("deleted"));
    found(&case.audit(&url, &[]).exits(0), [3, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn what_would_have_to_be_received_as_a_whole_is_told_as_not_compared_and_nothing_is_concluded_from_it()
{
    let case = Case::new().await;
    let first = Package::of_resources(FIRST).holds(&case.uri("a"), "a").holds(&case.uri("b"), "b");
    let url = case.dump(FIRST, &[case.package("/1.zip", first.zip(), "", Ranges::Given)]);
    case.copy.sync(&url).exits(0);
    let again = || Package::of_resources(SECOND).holds(&case.uri("a"), "a");
    let other = |name: &str| {
        let md = format!("capability=\"changedump-manifest\" from=\"{FIRST}\"");
        Package::with(&md).holds(&case.uri(name), "x").zip()
    };
    let cases = [
        ("/2.tar.xz", again().tar_xz().await, Ranges::Given, "tar.xz"),
        ("/no-ranges.zip", again().zip(), Ranges::Unknown, "no ranges"),
        ("/other.zip", other("z"), Ranges::Given, "changedump-manifest"),
    ];
    for (path, bytes, ranges, why) in cases {
        case.dump(SECOND, &[case.package(path, bytes, "", ranges)]);
        let run = case.audit(&url, &[]).exits(1);
        found(&run, [0, 0, 0, 0, 0, 1, 2]);
        let remark = run.json()["remarks"][0].as_str().unwrap_or_default().to_owned();
        for words in [path, "was not compared", why, "--mode baseline"] {
            assert!(remark.contains(words), "{words:?} is not in {remark:?}");
        }
        // The audit does nothing about it, either.
        case.audit(&url, &["--repair", "--absent", "delete", "--max-deletes", "100%"]).exits(1);
        assert_eq!(case.copy.state(&case.uri("b")).as_deref(), Some("present"));
    }
    let text = case.copy.run("audit", &[&url]).exits(1).stdout;
    assert!(text.contains("not everything could be compared"), "{text}");
}

#[tokio::test]
async fn a_package_of_which_nothing_is_declared_is_the_held_one_if_its_server_says_so() {
    let case = Case::new().await;
    let bytes = Package::of_resources(FIRST).holds(&case.uri("a"), "a").zip();
    let uri = case.site.reply("/1.zip", Reply::ok(bytes).header("etag", "\"v1\""));
    let url = case.dump(FIRST, &[resource(&uri, "")]);
    case.copy.sync(&url).exits(0);
    case.site.next("/1.zip", Reply::status(304));
    found(&case.audit(&url, &[]).exits(0), [1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(case.site.conditions_at("/1.zip").last().unwrap().as_deref(), Some("\"v1\""));
    assert_eq!(case.site.requests_at("/1.zip"), 2);
}
