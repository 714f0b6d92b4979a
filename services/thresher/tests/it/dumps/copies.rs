//! Copies of manifests, which replace packages or save requests for them.

use testkit::scripted::Reply;

use crate::common::{Package, resource, urlset};
use crate::dumps::case::Case;
use crate::dumps::{AT, CHANGES, DUMP};

#[tokio::test]
async fn a_list_of_resources_replaces_no_copy_of_a_manifest_of_changes() {
    let case = Case::new().await;
    let entries = [resource(&case.site.serve("/a", "a"), "length=\"1\"")];
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    case.dump(&[case.package("/base.zip", b"PK no archive".to_vec(), "")]);
    case.site.serve("/changes.xml", urlset(CHANGES, &[case.unreadable_change()]));
    let offered =
        [("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump"), ("/changes.xml", "changedump")];
    let url = case.capabilities(&offered);
    case.copy.sync_with(&url, &["--prefer", "dump"]).exits(1).says(&["/base.zip", "/1.zip"]);
    case.holds(&[("a", "a"), ("b", "b")]);
}

#[tokio::test]
async fn of_a_package_that_a_change_list_names_the_copy_of_the_manifest_is_read_instead() {
    let case = Case::new().await;
    let list = urlset("capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"", &[case.unreadable_change()]);
    case.site.serve("/changes.xml", list);
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

    case.dump(&[good, case.with_contents(&second, "/2.xml", holds().manifest())]);
    let asked = case.site.requests_at("/2.zip");
    case.copy.sync(&url).exits(0);
    assert_eq!(case.site.requests_at("/2.zip"), asked);
    let uploads = std::path::Path::new(&case.copy.into).join(".thresher/uploads");
    let notes = walk(&uploads);
    assert!(notes.is_empty(), "nobody goes on with it: {notes:?}");
}

#[tokio::test]
async fn lnk_14_where_the_copy_of_a_manifest_differs_the_one_in_the_package_counts() {
    let case = Case::new().await;
    let first = case.package("/1.zip", Package::of_resources(AT).holds(&case.uri("a"), "a1").zip(), "");
    let url = case.dump(&[first]);
    case.copy.sync(&url).exits(0);

    // The package was made again, and its copy was not.
    let dump = |day: u32, content: &str, is_stale: bool| {
        let at = format!("2026-01-0{day}T00:00:00Z");
        let made = |at: &str| Package::of_resources(at).holds(&case.uri("a"), content);
        let package = case.package(&format!("/{day}.zip"), made(&at).zip(), "");
        let copy = made(if is_stale { AT } else { &at }).manifest();
        let entry = case.with_contents(&package, &format!("/{day}.xml"), copy);
        case.site.serve("/dump.xml", urlset(&format!("capability=\"resourcedump\" at=\"{at}\""), &[entry]));
    };
    dump(3, "a2", true);
    let run = case.copy.sync(&url).exits(0);
    assert_eq!(run.json()["quirks"]["contents-differs"], 1, "{run}");
    case.holds(&[("a", "a2")]);

    dump(4, "a3", false);
    let run = case.copy.sync(&url).exits(0);
    assert_eq!(run.json()["quirks"]["contents-differs"], serde_json::Value::Null, "{run}");
    assert_eq!((run.count("stored"), case.site.requests_at("/4.xml")), (1, 1), "{run}");
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
