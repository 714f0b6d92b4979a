//! Packages are received, opened and applied. Resources missing from them are requested by themselves.

use testkit::scripted::Reply;

use crate::common::{Destination, Package, resource, urlset};
use crate::dumps::case::Case;
use crate::dumps::{AT, DUMP};

#[tokio::test]
async fn a_dump_is_harvested_by_its_packages_and_a_second_run_downloads_nothing() {
    let case = Case::new().await;
    let first = Package::of_resources(AT)
        .holds(&case.uri("a"), "aaa")
        .deflated()
        .holds(&case.uri("b"), "b".repeat(5_000));
    let second = Package::of_resources(AT).holds(&case.uri("c"), "");
    let packages = [case.package("/1.zip", first.zip(), ""), case.package("/2.zip", second.zip(), "")];
    let url = case.dump(&packages);
    let run = case.copy.sync(&url).exits(0);
    assert_eq!((run.count("listed"), run.count("stored"), run.count("failed")), (3, 3, 0), "{run}");
    case.holds(&[("a", "aaa"), ("b", &"b".repeat(5_000)), ("c", "")]);
    assert_eq!(case.site.requests_at("/a"), 0, "no resource is asked for by itself");

    // The same dump at another moment: its packages have not changed.
    case.site.serve("/dump.xml", urlset(&DUMP.replace("00:00:00Z", "00:00:05Z"), &packages));
    let again = case.copy.sync(&url).exits(0);
    assert_eq!((again.count("stored"), again.count("unchanged")), (0, 3), "{again}");
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/2.zip")), (1, 1));
}

#[tokio::test]
async fn a_change_dump_is_applied_in_the_order_of_time_with_deletions_and_several_versions() {
    let case = Case::new().await;
    let base = Package::of_resources(AT)
        .holds(&case.uri("a"), "a1")
        .holds(&case.uri("b"), "b1")
        .holds(&case.uri("c"), "c1");
    case.dump(&[case.package("/base.zip", base.zip(), "")]);
    let url = case.changes(&[]);
    case.copy.sync(&url).exits(0);
    case.holds(&[("a", "a1"), ("b", "b1"), ("c", "c1")]);

    let first = Package::of_changes("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
        .changed(&case.uri("a"), "updated", "2026-01-01T01:00:00Z", "a2")
        .changed(&case.uri("a"), "updated", "2026-01-01T02:00:00Z", "a3")
        .changed(&case.uri("d"), "created", "2026-01-01T03:00:00Z", "d1")
        .deleted(&case.uri("b"), "2026-01-01T04:00:00Z");
    let second = Package::of_changes("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
        .deleted(&case.uri("d"), "2026-01-02T01:00:00Z")
        .changed(&case.uri("b"), "created", "2026-01-02T02:00:00Z", "b2");
    let spans = [1, 2]
        .map(|day| format!("from=\"2026-01-0{day}T00:00:00Z\" until=\"2026-01-0{}T00:00:00Z\"", day + 1));
    let packages =
        [case.package("/2.zip", second.zip(), &spans[1]), case.package("/1.zip", first.zip(), &spans[0])];
    case.changes(&packages);
    let run = case.copy.sync(&url).exits(0);
    case.holds(&[("a", "a3"), ("b", "b2"), ("c", "c1")]);
    assert_eq!(run.count("gaps"), 0, "{run}");
    assert_eq!(case.site.requests_at("/base.zip"), 1);
    let again = case.copy.sync(&url).exits(0);
    assert_eq!((again.count("stored"), again.count("deleted")), (0, 0), "{again}");
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/2.zip")), (1, 1));
}

/// LNK-10: with `--keep-versions`, no bitstream of a Change Dump is lost.
#[tokio::test]
async fn all_versions_of_a_package_of_changes_are_kept_where_versions_are() {
    let case = Case::new().await;
    let base = Package::of_resources(AT).holds(&case.uri("a"), "a1").holds(&case.uri("b"), "b1");
    case.dump(&[case.package("/base.zip", base.zip(), "")]);
    let url = case.changes(&[]);
    case.copy.sync_with(&url, &["--keep-versions", "2"]).exits(0);
    let changes = Package::of_changes("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
        .changed(&case.uri("a"), "updated", "2026-01-01T01:00:00Z", "a2")
        .changed(&case.uri("a"), "updated", "2026-01-01T02:00:00Z", "a3")
        .changed(&case.uri("a"), "updated", "2026-01-01T03:00:00Z", "a4")
        .changed(&case.uri("b"), "updated", "2026-01-01T03:00:00Z", "b2");
    let span = "from=\"2026-01-01T00:00:00Z\" until=\"2026-01-02T00:00:00Z\"";
    case.changes(&[case.package("/1.zip", changes.zip(), span)]);
    case.copy.sync(&url).exits(0);
    case.holds(&[("a", "a4"), ("b", "b2")]);
    let cat = |name: &str, time: &str| {
        let run = case.copy.run("cat", &[&case.uri(name), "--source-at", time]);
        (run.exit == Some(0)).then_some(run.stdout)
    };
    for (name, time, expected) in [
        ("a", "2026-01-01T00:30:00Z", None),
        ("a", "2026-01-01T01:00:00Z", Some("a2")),
        ("a", "2026-01-01T02:59:59Z", Some("a3")),
        ("a", "2026-01-01T03:00:00Z", Some("a4")),
        ("b", "2026-01-01T02:00:00Z", Some("b1")),
        ("b", "2026-01-05", Some("b2")),
    ] {
        assert_eq!(cat(name, time).as_deref(), expected, "{name} {time}");
    }
    let explained = case.copy.run("explain", &[&case.uri("a")]).exits(0).stdout;
    assert!(explained.contains("--source-at 2026-01-01T01:00:00Z"), "{explained}");
    // They are no garbage, and a second sync changes nothing.
    case.copy.run("gc", &["--retention", "0s"]).exits(0);
    case.copy.sync(&url).exits(0);
    assert_eq!(cat("a", "2026-01-01T01:00:00Z").as_deref(), Some("a2"));
}

#[tokio::test]
async fn what_a_package_has_not_is_asked_for_by_itself() {
    let case = Case::new().await;
    case.site.serve("/damaged", "as declared");
    case.site.serve("/missing", "asked for");
    let declared = Package::of_resources(AT).holds(&case.uri("damaged"), "as declared").manifest();
    let md =
        declared.split("<rs:md ").nth(2).and_then(|md| md.split("/>").next()).expect("its rs:md").to_owned();
    let package = Package::of_resources(AT)
        .entry(&case.uri("damaged"), &md)
        .member("resources/0", "AS DECLARED")
        .entry(&case.uri("missing"), "path=\"/nowhere\"")
        .holds(&case.uri("good"), "good");
    let url = case.dump(&[case.package("/1.zip", package.zip(), "")]);
    case.copy.sync(&url).exits(0);
    case.holds(&[("damaged", "as declared"), ("missing", "asked for"), ("good", "good")]);
    assert_eq!((case.site.requests_at("/damaged"), case.site.requests_at("/missing")), (1, 1));
    assert_eq!(case.site.requests_at("/good"), 0);
}

#[tokio::test]
async fn a_member_that_no_entry_names_is_a_problem_and_nothing_else() {
    let case = Case::new().await;
    let package = || Package::of_resources(AT).holds(&case.uri("a"), "a").member("thumbs.db", "x");
    let url = case.dump(&[case.package("/1.zip", package().zip(), "")]);
    case.copy.sync(&url).exits(1).says(&["thumbs.db"]);
    case.holds(&[("a", "a")]);
    // A tar does so too.
    let other = Destination::directory();
    let url = case.dump(&[case.package("/1.tar.xz", package().tar_xz().await, "")]);
    other.sync(&url).exits(1).says(&["1 of the package's members", "thumbs.db"]);
    assert_eq!(other.present(), case.copy.present());
}

#[tokio::test]
async fn a_package_that_is_not_what_was_declared_is_not_opened() {
    let case = Case::new().await;
    let package = Package::of_resources(AT).holds(&case.uri("a"), "a").zip();
    let entry = case.package("/1.zip", package, "");
    let other = Package::of_resources(AT).holds(&case.uri("a"), "another").zip();
    case.site.reply("/1.zip", Reply::ok(other));
    let url = case.dump(&[entry]);
    case.copy.sync(&url).exits(1).says(&["/1.zip"]);
    case.holds(&[]);
}

#[tokio::test]
async fn where_a_package_cannot_be_read_the_list_is_read_instead() {
    let case = Case::new().await;
    case.site.serve("/a", "a");
    case.site.serve("/b", "b");
    let good = Package::of_resources(AT).holds(&case.uri("a"), "a").zip();
    let packages = [case.package("/1.zip", good, ""), case.package("/2.zip", b"PK no archive".to_vec(), "")];
    case.dump(&packages);
    let entries = ["a", "b"].map(|name| resource(&case.uri(name), "length=\"1\""));
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    let url = case.capabilities(&[("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")]);
    case.copy.sync_with(&url, &["--prefer", "dump"]).exits(1).says(&["/2.zip"]);
    case.holds(&[("a", "a"), ("b", "b")]);
}

/// Packages built one after the other are of later moments than their dump, and of the same edition.
#[tokio::test]
async fn a_package_of_a_later_moment_than_its_dump_is_taken_while_the_dump_is_the_same() {
    let case = Case::new().await;
    let package = |path: &str, name: &str, minute: u32| {
        let at = AT.replace("00:00:00Z", &format!("00:0{minute}:00Z"));
        let bytes = Package::of_resources(&at).holds(&case.uri(name), name).zip();
        let entry = resource(&case.uri(&path[1..]), &format!("length=\"{}\"", bytes.len()));
        case.site.reply(path, Reply::ok(bytes));
        entry
    };
    let packages = [package("/1.zip", "a", 1), package("/2.zip", "b", 2)];
    let url = case.dump(&packages);
    let run = case.copy.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (2, 0), "{run}");
    case.holds(&[("a", "a"), ("b", "b")]);
}

#[tokio::test]
async fn a_dump_that_is_another_one_when_a_package_of_a_later_moment_comes_is_a_problem_until_it_is_read_again()
 {
    let case = Case::new().await;
    let at = |minute: u32| AT.replace("00:00:00Z", &format!("00:0{minute}:00Z"));
    let entries = |lengths: [usize; 2]| {
        [1, 2].map(|n| resource(&case.uri(&format!("{n}.zip")), &format!("length=\"{}\"", lengths[n - 1])))
    };
    // `b` was in the second package, and is in the first one of the next edition.
    let first = Package::of_resources(&at(0)).holds(&case.uri("a"), "a").zip();
    let first_anew =
        Package::of_resources(&at(5)).holds(&case.uri("a"), "a").holds(&case.uri("b"), "b").zip();
    let second_anew = Package::of_resources(&at(5)).holds(&case.uri("c"), "c").zip();
    let length = first.len();
    let length_anew = first_anew.len();
    let second = second_anew.len();
    case.site.reply("/1.zip", Reply::ok(first));
    case.site.reply("/2.zip", Reply::ok(second_anew));
    let read = urlset(DUMP, &entries([length, second]));
    let anew = urlset(&DUMP.replace("00:00:00Z", "00:05:00Z"), &entries([length_anew, second]));
    case.site.next("/dump.xml", Reply::ok(read).header("content-type", "application/xml"));
    let url = case.site.serve("/dump.xml", anew);
    case.copy.sync(&url).exits(1).says(&["/dump.xml", "published it anew", "/2.zip"]);
    case.holds(&[("a", "a"), ("c", "c")]);
    case.site.reply("/1.zip", Reply::ok(first_anew));
    case.copy.sync(&url).exits(0);
    case.holds(&[("a", "a"), ("b", "b"), ("c", "c")]);
}

#[tokio::test]
async fn a_copy_of_the_manifest_saves_a_package_that_brings_nothing_new() {
    let case = Case::new().await;
    let package = || Package::of_resources(AT).holds(&case.uri("a"), "a").holds(&case.uri("b"), "b");
    let url = case.dump(&[case.package("/1.zip", package().zip(), "")]);
    case.copy.sync(&url).exits(0);

    // The same resources in a package of another name.
    let entry = case.package("/2.zip", package().zip(), "");
    let entry = case.with_contents(&entry, "/2.xml", package().manifest());
    case.dump(&[entry]);
    let run = case.copy.sync(&url).exits(0);
    assert_eq!(run.count("unchanged"), 2, "{run}");
    assert_eq!((case.site.requests_at("/2.xml"), case.site.requests_at("/2.zip")), (1, 0));
    case.holds(&[("a", "a"), ("b", "b")]);
}

#[tokio::test]
async fn what_a_later_dump_does_not_name_is_kept_until_another_one_confirms_it() {
    let case = Case::new().await;
    let names: Vec<String> = (0..20).map(|n| format!("r{n:02}")).collect();
    let dump = |day: u32, names: &[String]| {
        let at = format!("2026-01-0{day}T00:00:00Z");
        let package = names
            .iter()
            .fold(Package::of_resources(&at), |package, name| package.holds(&case.uri(name), name));
        let entry = case.package(&format!("/{day}.zip"), package.zip(), "");
        case.site.serve("/dump.xml", urlset(&format!("capability=\"resourcedump\" at=\"{at}\""), &[entry]))
    };
    let url = dump(1, &names);
    case.copy.sync(&url).exits(0);
    dump(2, &names[1..]);
    let run = case.copy.sync(&url).exits(0);
    assert_eq!((run.count("deleted"), case.copy.present().len()), (0, 20), "{run}");
    dump(3, &names[1..]);
    let run = case.copy.sync(&url).exits(0);
    assert_eq!((run.count("deleted"), case.copy.present().len()), (1, 19), "{run}");
}
