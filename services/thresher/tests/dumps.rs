//! Dumps: packages are received, opened and adopted, and what is held is what a harvest by lists would hold.
#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::io::Read as _;

use common::{Destination, Fleet, Package, Process, Site, package, resource, urlset};
use testkit::files::{File, FileServer};
use testkit::scripted::Reply;
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::until;

const AT: &str = "2026-01-01T00:00:00Z";
const DUMP: &str = "capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"";
const CHANGES: &str = "capability=\"changedump\" from=\"2026-01-01T00:00:00Z\"";

/// A Source of dumps, and a copy of it.
struct Case {
    site: Site,
    copy: Destination,
}

impl Case {
    async fn new() -> Self {
        Self { site: Site::start().await, copy: Destination::directory() }
    }

    /// Serves a package; gives its entry in a dump.
    fn package(&self, path: &str, bytes: Vec<u8>, more: &str) -> String {
        let entry = package(&self.site.uri(path), &bytes, more);
        self.site.reply(path, Reply::ok(bytes));
        entry
    }

    /// Serves `/dump.xml`.
    fn dump(&self, packages: &[String]) -> String {
        self.site.serve("/dump.xml", urlset(DUMP, packages))
    }

    /// Serves `/changes.xml`, and the Capability List of both dumps.
    fn changes(&self, packages: &[String]) -> String {
        self.site.serve("/changes.xml", urlset(CHANGES, packages));
        self.capabilities(&[("/dump.xml", "resourcedump"), ("/changes.xml", "changedump")])
    }

    fn capabilities(&self, documents: &[(&str, &str)]) -> String {
        let entry =
            |(path, name): &(&str, &str)| resource(&self.site.uri(path), &format!("capability=\"{name}\""));
        let entries: Vec<String> = documents.iter().map(entry).collect();
        self.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &entries))
    }

    fn uri(&self, name: &str) -> String {
        self.site.uri(&format!("/{name}"))
    }

    /// Checks that these are present with these bytes, by `ls`, by `cat` and in the view, and nothing else.
    #[track_caller]
    fn holds(&self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(name, bytes)| (self.uri(name), (*bytes).to_owned())).collect();
        let present = self.copy.present();
        assert_eq!(present.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (uri, bytes) in &expected {
            assert_eq!(String::from_utf8_lossy(&self.copy.cat(uri)), *bytes, "{uri}");
            assert_eq!(self.copy.file(uri).as_deref(), Some(bytes.as_bytes()), "{uri}");
        }
        assert_eq!(self.copy.view().len(), expected.len());
    }
}

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

    // The same dump at another moment: its packages are what they were.
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
    // A tar says so too.
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

#[tokio::test]
async fn a_copy_of_the_manifest_saves_a_package_that_brings_nothing_new() {
    let case = Case::new().await;
    let package = || Package::of_resources(AT).holds(&case.uri("a"), "a").holds(&case.uri("b"), "b");
    let url = case.dump(&[case.package("/1.zip", package().zip(), "")]);
    case.copy.sync(&url).exits(0);

    // The same resources in a package of another name.
    let contents = case.site.serve("/2.xml", package().manifest());
    let link = format!("<rs:ln rel=\"contents\" href=\"{contents}\"/></url>");
    let entry = case.package("/2.zip", package().zip(), "").replace("</url>", &link);
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

#[tokio::test]
async fn where_both_are_offered_the_quicker_way_is_gone_and_plan_says_which() {
    let case = Case::new().await;
    let names: Vec<String> = (0..200).map(|n| format!("r{n:03}")).collect();
    let package =
        names.iter().fold(Package::of_resources(AT), |package, name| package.holds(&case.uri(name), name));
    let entries: Vec<String> = names
        .iter()
        .map(|name| {
            case.site.serve(&format!("/{name}"), name.as_str());
            resource(
                &case.uri(name),
                &format!("hash=\"sha-256:{}\" length=\"4\"", fixity::Sha256::of(name.as_bytes())),
            )
        })
        .collect();
    let list = urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries);
    // So slow a Source makes each request dear.
    case.site.reply("/list.xml", Reply::ok(list).delay(std::time::Duration::from_millis(300)));
    case.dump(&[case.package("/1.zip", package.zip(), "")]);
    let url = case.capabilities(&[("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")]);

    let plan = case.copy.run("plan", &[&url, "--json"]).exits(0).json();
    let ways: Vec<(&str, u64, bool)> = plan["ways"]
        .as_array()
        .expect("ways")
        .iter()
        .map(|way| {
            (
                way["capability"].as_str().unwrap(),
                way["requests"].as_u64().unwrap(),
                way["chosen"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        ways,
        [("resourcelist", 200, true), ("resourcedump", 1, true)],
        "the list says what, the dump brings it"
    );
    assert!(!std::path::Path::new(&case.copy.into).exists(), "nothing was harvested");

    let run = case.copy.sync(&url).exits(0);
    assert_eq!((run.count("listed") >= 200, run.count("stored")), (true, 200), "{run}");
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/r000")), (1, 0));

    // With all of it held, neither is needed; by word of the operator each resource is asked for by itself.
    let other = Destination::directory();
    other.sync_with(&url, &["--prefer", "list"]).exits(0);
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/r000")), (1, 1));
    assert_eq!(other.present(), case.copy.present());
}

#[tokio::test]
async fn many_changes_are_not_looked_for_in_a_dump_of_an_earlier_moment() {
    let case = Case::new().await;
    let names: Vec<String> = (0..100).map(|n| format!("r{n:03}")).collect();
    let declared = |name: &String, more: &str| {
        resource(
            &case.uri(name),
            &format!("hash=\"sha-256:{}\" length=\"4\" {more}", fixity::Sha256::of(name.as_bytes())),
        )
    };
    for name in &names {
        case.site.serve(&format!("/{name}"), name.as_str());
    }
    let list: Vec<String> = names[..10].iter().map(|name| declared(name, "")).collect();
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &list));
    let from = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    case.site.reply(
        "/list-of-changes.xml",
        Reply::ok(urlset(from, &[])).delay(std::time::Duration::from_millis(300)),
    );
    case.dump(&[case.package(
        "/1.zip",
        Package::of_resources(AT).holds(&case.uri("r000"), "r000").zip(),
        "",
    )]);
    let offered = [
        ("/list.xml", "resourcelist"),
        ("/dump.xml", "resourcedump"),
        ("/list-of-changes.xml", "changelist"),
    ];
    let url = case.capabilities(&offered);
    case.copy.sync(&url).exits(0);

    let created: Vec<String> = names[10..]
        .iter()
        .map(|name| declared(name, "change=\"created\" datetime=\"2026-01-02T00:00:00Z\""))
        .collect();
    let slow = std::time::Duration::from_millis(300);
    case.site.reply("/list-of-changes.xml", Reply::ok(urlset(from, &created)).delay(slow));
    let asked = case.site.requests_at("/dump.xml");
    let run = case.copy.sync(&url).exits(0);
    assert_eq!(run.count("stored"), 90, "{run}");
    assert_eq!((case.site.requests_at("/dump.xml"), case.site.requests_at("/1.zip")), (asked, 0));
}

/// Forty resources, declared with digest and length, as a list of them.
fn forty(case: &Case) -> (Vec<String>, Vec<String>) {
    let names: Vec<String> = (0..40).map(|n| format!("r{n:02}")).collect();
    let entries = names.iter().map(|name| {
        case.site.serve(&format!("/{name}"), name.as_str());
        let digest = fixity::Sha256::of(name.as_bytes());
        resource(&case.uri(name), &format!("hash=\"sha-256:{digest}\" length=\"3\""))
    });
    let entries = entries.collect();
    (names, entries)
}

#[tokio::test]
async fn a_dump_of_which_a_package_was_let_go_of_is_read_again_until_all_of_it_was_seen() {
    let case = Case::new().await;
    let small = case.package("/1.zip", Package::of_resources(AT).holds(&case.uri("a"), "a").zip(), "");
    let dump = |packages: &[String]| {
        case.site.reply("/dump.xml", Reply::ok(urlset(DUMP, packages)).header("etag", "\"v\""));
    };
    dump(std::slice::from_ref(&small));
    let both = [("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")];
    let url = case.capabilities(&both);
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &[]));
    case.copy.sync_with(&url, &["--prefer", "dump"]).exits(0);
    assert_eq!(case.site.requests_at("/1.zip"), 1);

    // Another package, of a size that nobody knows: each resource of the list is asked for by itself. It holds one that the list does not name.
    let (names, entries) = forty(&case);
    let other = Package::of_resources(AT).holds(&case.uri("z"), "z");
    dump(&[small, resource(&case.site.reply("/2.zip", Reply::ok(other.zip())), "")]);
    let list = [resource(&case.uri("a"), "length=\"1\"")].into_iter().chain(entries).collect::<Vec<_>>();
    case.site.serve("/a", "a");
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:05Z\"", &list));
    let run = case.copy.sync(&url).exits(0);
    assert_eq!((case.site.requests_at("/2.zip"), case.site.requests_at("/dump.xml")), (0, 2), "{run}");
    assert_eq!(case.copy.present().len(), 1 + names.len());

    let url = case.capabilities(&both[1..]);
    case.copy.sync_with(&url, &["--rediscover"]).exits(0);
    assert_eq!(
        case.site.conditions_at("/dump.xml"),
        [None, None, None],
        "it is not asked whether the dump has changed"
    );
    assert_eq!(case.site.requests_at("/2.zip"), 1);
    assert!(case.copy.present().contains_key(&case.uri("z")));
    case.copy.sync(&url).exits(0);
    assert_eq!(
        case.site.conditions_at("/dump.xml").last(),
        Some(&Some("\"v\"".to_owned())),
        "now it is known whole"
    );
}

#[tokio::test]
async fn a_dump_that_names_a_package_twice_is_read_whole_and_one_that_names_a_package_that_nobody_can_ask_for_is_not()
 {
    let case = Case::new().await;
    let one = case.package("/1.zip", Package::of_resources(AT).holds(&case.uri("a"), "a").zip(), "");
    let dump = |packages: &[String]| {
        case.site.reply("/dump.xml", Reply::ok(urlset(DUMP, packages)).header("etag", "\"v\""))
    };
    let url = dump(&[one.clone(), one.clone()]);
    case.copy.sync(&url).exits(0);
    case.copy.sync(&url).exits(0);
    let conditions = case.site.conditions_at("/dump.xml");
    assert_eq!(conditions.last(), Some(&Some("\"v\"".to_owned())), "{conditions:?}");

    let other = Destination::directory();
    dump(&[one, resource("ftp://127.0.0.1/2.zip", "")]);
    for _ in 0..2 {
        other.sync(&url).exits(1).says(&["ftp"]);
    }
    let later = case.site.conditions_at("/dump.xml").split_off(conditions.len());
    assert!(later.len() >= 2 && later.iter().all(Option::is_none), "{later:?}");
    assert_eq!(other.present(), case.copy.present());
}

#[tokio::test]
async fn a_run_that_was_killed_while_it_looked_at_a_dump_weighs_it_all_the_same() {
    let case = Case::new().await;
    let (names, entries) = forty(&case);
    // Of a size that nobody knows, so that it is not the way to go.
    let package = Package::of_resources(AT).holds(&case.uri("r00"), "r00").zip();
    case.dump(&[resource(&case.site.reply("/1.zip", Reply::ok(package)), "")]);
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    let url = case.capabilities(&[("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")]);
    case.site.next("/dump.xml", Reply::ok("").delay(std::time::Duration::from_secs(600)));
    let harvest = Process::start(&mut case.copy.command("sync", &[&url]));
    harvest.kill_when(|| case.site.requests_at("/dump.xml") > 0).await;
    case.copy.sync(&url).exits(0);
    assert_eq!((case.site.requests_at("/1.zip"), case.copy.present().len()), (0, names.len()));
}

#[tokio::test]
async fn what_a_dump_may_save_is_measured_by_the_list_of_its_own_set() {
    let case = Case::new().await;
    let (names, _) = forty(&case);
    // No lengths: what is wanted is taken for that part of the dump's bytes, here all of them.
    let list = |name: &str, uris: &[String]| {
        let entries: Vec<String> = uris.iter().map(|uri| resource(uri, "")).collect();
        case.site.serve(name, urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    };
    list("/list.xml", &names.iter().map(|name| case.uri(name)).collect::<Vec<_>>());
    let others: Vec<String> =
        (0..400).map(|n| case.site.serve(&format!("/other/{n}"), n.to_string())).collect();
    list("/others.xml", &others);
    let package = names
        .iter()
        .fold(Package::of_resources(AT), |package, name| package.holds(&case.uri(name), name))
        .member("padding", "z".repeat(10 << 20));
    case.dump(&[case.package("/1.zip", package.zip(), "")]);
    case.capabilities(&[("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")]);
    let own = case.site.uri("/caps.xml");
    let entry = [resource(&case.site.uri("/others.xml"), "capability=\"resourcelist\"")];
    let other = case.site.serve("/others-caps.xml", urlset("capability=\"capabilitylist\"", &entry));
    let sets = [own, other].map(|uri| resource(&uri, "capability=\"capabilitylist\""));
    let url = case.site.serve("/description.xml", urlset("capability=\"description\"", &sets));
    case.copy.sync(&url).exits(1).says(&["padding"]);
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/r00")), (1, 0));
    assert_eq!(case.copy.present().len(), 440);
}

#[tokio::test]
async fn a_list_of_resources_replaces_no_copy_of_a_manifest_of_changes() {
    let case = Case::new().await;
    let entries = [resource(&case.site.serve("/a", "a"), "length=\"1\"")];
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    case.dump(&[case.package("/base.zip", b"PK no archive".to_vec(), "")]);
    let changes = Package::of_changes("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z").changed(
        &case.site.serve("/b", "b"),
        "created",
        "2026-01-01T05:00:00Z",
        "b",
    );
    let copy = case.site.serve("/1.xml", changes.manifest());
    let link = format!("<rs:ln rel=\"contents\" href=\"{copy}\"/></url>");
    let package = case.package("/1.zip", b"PK no archive".to_vec(), "").replace("</url>", &link);
    case.site.serve("/changes.xml", urlset(CHANGES, &[package]));
    let offered =
        [("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump"), ("/changes.xml", "changedump")];
    let url = case.capabilities(&offered);
    case.copy.sync_with(&url, &["--prefer", "dump"]).exits(1).says(&["/base.zip", "/1.zip"]);
    case.holds(&[("a", "a"), ("b", "b")]);
}

#[tokio::test]
async fn of_a_package_that_a_change_list_names_the_copy_of_the_manifest_is_read_instead() {
    let case = Case::new().await;
    let changes = Package::of_changes("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z").changed(
        &case.site.serve("/b", "b"),
        "created",
        "2026-01-01T05:00:00Z",
        "b",
    );
    let copy = case.site.serve("/1.xml", changes.manifest());
    let link = format!("<rs:ln rel=\"contents\" href=\"{copy}\"/></url>");
    let package = case.package("/1.zip", b"PK no archive".to_vec(), "").replace("</url>", &link);
    case.site
        .serve("/changes.xml", urlset("capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"", &[package]));
    let url = case.capabilities(&[("/changes.xml", "changelist")]);
    case.copy.sync(&url).exits(1).says(&["/1.zip"]);
    case.holds(&[("b", "b")]);
}

#[tokio::test]
async fn a_package_that_need_not_be_received_any_more_is_no_problem_any_more() {
    let case = Case::new().await;
    let holds = || Package::of_resources(AT).holds(&case.uri("a"), "a".repeat(100_000));
    let good = case.package("/1.zip", holds().zip(), "");
    let url = case.dump(std::slice::from_ref(&good));
    case.copy.sync(&url).exits(0);

    let bytes = holds().zip();
    let second = case.package("/2.zip", bytes.clone(), "");
    case.site.reply(
        "/2.zip",
        Reply::ok(bytes).header("etag", "\"v1\"").header("accept-ranges", "bytes").cut_after(50_000),
    );
    case.dump(&[good.clone(), second.clone()]);
    case.copy.sync_with(&url, &["--retries", "0"]).exits(1).says(&["/2.zip"]);

    let contents = case.site.serve("/2.xml", holds().manifest());
    let link = format!("<rs:ln rel=\"contents\" href=\"{contents}\"/></url>");
    case.dump(&[good, second.replace("</url>", &link)]);
    let asked = case.site.requests_at("/2.zip");
    case.copy.sync(&url).exits(0);
    assert_eq!(case.site.requests_at("/2.zip"), asked);
    let uploads = std::path::Path::new(&case.copy.into).join(".thresher/uploads");
    let notes = walk(&uploads);
    assert!(notes.is_empty(), "nobody goes on with it: {notes:?}");
}

/// All files below a directory.
fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries =
        std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn a_dump_that_could_not_be_read_is_no_problem_any_more_once_the_list_was_read_instead() {
    let case = Case::new().await;
    case.site.serve("/a", "a1");
    let list = format!("capability=\"resourcelist\" at=\"{AT}\"");
    case.site.serve("/list.xml", urlset(&list, &[resource(&case.uri("a"), "")]));
    case.site.serve("/dump.xml", urlset(DUMP, &[]).replace("</urlset>", ""));
    let way_in = case.capabilities(&[("/dump.xml", "resourcedump"), ("/list.xml", "resourcelist")]);
    case.copy.sync_with(&way_in, &["--prefer", "dump"]).exits(1).says(&["/dump.xml"]);
    case.copy.sync_with(&way_in, &["--prefer", "list"]).exits(0);
    case.holds(&[("a", "a1")]);
}

#[tokio::test]
async fn a_large_package_comes_in_several_ranges_and_leaves_a_slot_to_others() {
    let case = Case::new().await;
    let server = FileServer::start().await.expect("a free port on loopback");
    let bytes = Package::of_resources(AT).holds(&case.uri("a"), "a".repeat(20 << 20)).zip();
    let entry = package(&server.uri("/1.zip"), &bytes, "");
    server.serve("/1.zip", File::new(bytes.clone(), "\"v1\""));
    // Nothing comes before three are open: the limit is four.
    server.wait_for(3);
    case.copy.sync(&case.dump(&[entry])).exits(0);
    case.holds(&[("a", &"a".repeat(20 << 20))]);
    assert_eq!((server.most_open(), server.sent()), (3, bytes.len() as u64));
}

#[tokio::test]
async fn a_package_that_could_not_be_received_is_gone_on_with_by_the_next_run() {
    let case = Case::new().await;
    let bytes = Package::of_resources(AT).holds(&case.uri("a"), "a".repeat(300_000)).zip();
    let url = case.dump(&[case.package("/1.zip", bytes.clone(), "")]);
    let head = |reply: Reply| reply.header("etag", "\"v1\"").header("accept-ranges", "bytes");
    let rest = || {
        let range = format!("bytes 200000-{}/{}", bytes.len() - 1, bytes.len());
        head(Reply::status(206).body(bytes[200_000..].to_vec()).header("content-range", range))
    };
    case.site.next("/1.zip", head(Reply::ok(bytes.clone())).cut_after(200_000));
    // Then the server breaks off before it begins, again and again.
    case.site.reply("/1.zip", rest().cut_after(0));
    case.copy.sync_with(&url, &["--retries", "0"]).exits(1).says(&["/1.zip"]);
    case.holds(&[]);
    let before = case.site.requests_at("/1.zip");
    case.site.reply("/1.zip", rest());
    case.copy.sync(&url).exits(0);
    case.holds(&[("a", &"a".repeat(300_000))]);
    let ranges = case.site.headers_at("/1.zip", "range").split_off(before);
    assert_eq!(ranges, [Some("bytes=200000-".to_owned())]);
}

#[tokio::test]
async fn a_package_that_is_said_to_be_unchanged_before_it_ever_came_is_a_problem() {
    let case = Case::new().await;
    let package = Package::of_resources(AT).holds(&case.uri("a"), "a").zip();
    let url = case.dump(&[case.package("/1.zip", package, "")]);
    case.site.reply("/1.zip", Reply::status(304));
    case.copy.sync(&url).exits(1).says(&["/1.zip", "304"]);
    case.holds(&[]);
}

#[tokio::test]
async fn inspect_shows_a_package_with_its_members() {
    let case = Case::new().await;
    let package = || {
        Package::of_resources(AT)
            .holds("http://example.org/a", "aaa")
            .entry("http://example.org/b", "path=\"/nowhere\"")
            .member("stray.txt", "x")
    };
    let folder = tempfile::tempdir().unwrap();
    let files = [("p.zip", package().zip()), ("p.tar.xz", package().tar_xz().await)];
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let lines = inspected(&path.display().to_string());
        assert_eq!(lines[0]["package"].as_str(), name.split_once('.').map(|(_, kind)| kind), "{lines:?}");
        assert_eq!(lines[1]["document"], "resourcedump-manifest");
        assert_eq!(
            (&lines[2]["member"]["name"], &lines[2]["member"]["length"]),
            (&"resources/0".into(), &3.into())
        );
        assert!(lines[3]["member"].is_null() && lines[3].get("member").is_some(), "{lines:?}");
        assert_eq!(lines[4]["entries"], 2);
        assert_eq!(lines[5]["unlisted"]["name"], "stray.txt");
    }
    case.site.reply("/p.zip", Reply::ok(package().zip()));
    assert_eq!(inspected(&case.site.uri("/p.zip")).len(), 6);
}

#[tokio::test]
async fn inspect_holds_no_member_of_a_tar_because_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.tar");
    let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
    // More than it would take as a manifest, were it one.
    let large = 257 << 20;
    let manifest = Package::of_resources(AT).holds("http://e.org/a", "a").manifest();
    for (name, length) in
        [("x/manifest.xml", large), ("manifest.xml", manifest.len() as u64), ("resources/0", 1)]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(length);
        match name {
            "manifest.xml" => tar.append_data(&mut header, name, manifest.as_bytes()).unwrap(),
            _ => tar.append_data(&mut header, name, std::io::repeat(b'a').take(length)).unwrap(),
        }
    }
    tar.finish().unwrap();
    let lines = inspected(&path.display().to_string());
    assert_eq!((&lines[0]["manifest"], &lines[0]["members"]), (&"manifest.xml".into(), &3.into()));
    assert_eq!(lines[2]["member"]["name"], "resources/0");
    assert_eq!(lines.last().unwrap()["unlisted"]["length"], large);
}

/// Every line of `thresher inspect`.
#[track_caller]
fn inspected(what: &str) -> Vec<serde_json::Value> {
    let mut command = common::thresher();
    command.args(["inspect", what]);
    common::Run::of(&mut command).exits(0).json_lines()
}

#[tokio::test]
async fn what_is_held_can_be_exported_as_a_dump_and_harvested_again() {
    let case = Case::new().await;
    let uris: Vec<String> =
        (0..30).map(|n| case.site.serve(&format!("/r{n}"), format!("body {n}"))).collect();
    let entries: Vec<String> = uris.iter().map(|uri| resource(uri, "")).collect();
    let list = case
        .site
        .serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    case.copy.sync(&list).exits(0);

    let folder = tempfile::tempdir().unwrap();
    let export = folder.path().join("dump");
    let directory = export.display().to_string();
    let base = case.site.uri("/exported/");
    case.copy.run("export", &[&directory, "--as", "resourcedump", "--base", &base]).exits(0);
    for file in ["resourcedump.xml", "capabilitylist.xml", "package-00001.zip"] {
        case.site.reply(&format!("/exported/{file}"), Reply::ok(std::fs::read(export.join(file)).unwrap()));
    }
    let other = Destination::directory();
    let run = other.sync(&case.site.uri("/exported/capabilitylist.xml")).exits(0);
    assert_eq!(run.count("stored"), 30, "{run}");
    assert_eq!(other.present(), case.copy.present());
    case.copy.run("export", &[&directory, "--as", "resourcedump", "--base", &base]).exits(2);

    // What is damaged is left out, and named at once.
    let packs = std::path::Path::new(&case.copy.into).join(".thresher/packs");
    let folder_of_source = std::fs::read_dir(packs).unwrap().next().unwrap().unwrap().path();
    let mut harmed = 0;
    for pack in std::fs::read_dir(folder_of_source).unwrap() {
        let pack = pack.unwrap().path();
        let mut bytes = std::fs::read(&pack).unwrap();
        if let Some(at) = bytes.windows(6).position(|window| window == b"body 7") {
            bytes[at] ^= 1;
            std::fs::write(&pack, bytes).unwrap();
            harmed += 1;
        }
    }
    assert_eq!(harmed, 1);
    let again = folder.path().join("again").display().to_string();
    let run = case.copy.run("export", &[&again, "--as", "resourcedump", "--base", &base]).exits(1);
    run.says(&["/r7 is left out", "29 resources", "1 left out"]);
}

const ALL: [&str; 4] = ["scheduler", "fetcher", "unpacker", "verifier"];

/// Serves a dump of three packages, one of them a tar, with 700 resources in each: several slices. Gives its URI, and what is in it.
async fn large_dump(case: &Case) -> (String, BTreeMap<String, (u64, String)>) {
    let (mut entries, mut truth) = (Vec::new(), BTreeMap::new());
    for part in 0..3 {
        let mut package = Package::of_resources(AT);
        for n in 0..700 {
            let (uri, body) = (case.uri(&format!("{part}/{n}")), format!("{part} {n} ").repeat(n % 40));
            truth.insert(uri.clone(), (body.len() as u64, fixity::Sha256::of(body.as_bytes()).to_string()));
            package = package.holds(&uri, body);
        }
        let (path, bytes) = match part {
            0 => ("/0.tar.xz", package.tar_xz().await),
            1 => ("/1.zip", package.zip()),
            _ => ("/2.zip", package.deflated().zip()),
        };
        entries.push(case.package(path, bytes, ""));
    }
    (case.dump(&entries), truth)
}

#[tokio::test]
async fn a_fleet_harvests_a_dump_as_a_laptop_does() {
    let case = Case::new().await;
    let (url, truth) = large_dump(&case).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let _services: Vec<_> =
        ALL.iter().chain(&["unpacker"]).map(|service| fleet.start(&[service], "")).collect();
    fleet.add(&url, &[]);
    fleet.harvest(&url).await.exits(0);
    assert_eq!(fleet.destination().present(), truth);
    case.copy.sync(&url).exits(0);
    assert_eq!(case.copy.present(), truth);
    for uri in truth.keys().step_by(300) {
        assert_eq!(fleet.destination().cat(uri), case.copy.cat(uri), "{uri}");
    }
    let again = fleet.harvest(&url).await.exits(0);
    assert_eq!(again.json()["counters"]["stored"], 0, "{again}");
    assert_eq!(case.site.requests_at("/1.zip"), 2, "once for each of them");
}

#[tokio::test]
async fn a_fetcher_and_an_unpacker_that_are_killed_at_a_dump_lose_nothing() {
    let case = Case::new().await;
    let (url, truth) = large_dump(&case).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let [_scheduler, fetcher, unpacker, _verifier] = ALL.map(|service| fleet.start(&[service], ""));
    fleet.add(&url, &[]);
    fleet.run("submit", &url, &[]).exits(0);
    until("a package was asked for", || case.site.requests_at("/2.zip") > 0).await;
    fetcher.kill();
    unpacker.kill();
    let _others = ["fetcher", "unpacker"].map(|service| fleet.start(&[service], ""));
    fleet.watch(&url).await.exits(0);
    assert_eq!(fleet.destination().present(), truth);
    for package in ["/0.tar.xz", "/1.zip", "/2.zip"] {
        assert!(case.site.requests_at(package) <= 2, "{package} is asked for once more at most");
    }
}
