//! A Source that lists resources of another one, or packs them into a dump.

use testkit::scripted::Reply;

use crate::common::{Destination, Package, Run, Site, package, resource, urlset};

const AT: &str = "2026-01-01T00:00:00Z";
const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
const DUMP: &str = "capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"";
/// Several Sources, of which one has a host name that resolves to this machine.
const OPTIONS: [&str; 4] = ["--view", "none", "--allow-address", "127.0.0.0/8"];

/// The same server by a name. For other Sources it is a site of its own.
fn named(uri: &str) -> String {
    uri.replace("127.0.0.1", "localhost")
}

/// A dump with one resource of its own and one of another Source.
fn dump(site: &Site, foreign: &str) -> String {
    let package_bytes =
        Package::of_resources(AT).holds(&site.uri("/own.txt"), "own").holds(foreign, "EVIL BYTES").zip();
    let entry = package(&site.uri("/1.zip"), &package_bytes, "");
    site.reply("/1.zip", Reply::ok(package_bytes));
    site.serve("/dump.xml", urlset(DUMP, &[entry]))
}

#[track_caller]
fn sync(copy: &Destination, url: &str, more: &[&str]) -> Run {
    copy.sync_with(url, &[&OPTIONS, more].concat())
}

#[tokio::test]
async fn of_what_two_sources_hold_none_is_chosen_and_what_is_foreign_is_marked() {
    let honest = Site::start().await;
    let evil = Site::start().await;
    let paper = named(&honest.serve("/paper.txt", "the paper"));
    let list = named(&honest.serve("/list.xml", urlset(LIST, &[resource(&paper, "")])));
    let dump = dump(&evil, &paper);
    let copy = Destination::directory();
    let run = sync(&copy, &list, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("foreign")), (1, 0), "{run}");
    let run = sync(&copy, &dump, &[]).exits(0).says(&["other sites"]);
    assert_eq!((run.count("stored"), run.count("foreign")), (2, 1), "{run}");

    copy.run("cat", &[&paper]).exits(2).complains(&[&paper, &list, &dump], &["--source"]);
    let given = |source: &str| copy.run("cat", &[&paper, "--source", source]).exits(0).stdout;
    assert_eq!((given(&list), given(&dump)), ("the paper".to_owned(), "EVIL BYTES".to_owned()));
    assert_eq!(copy.cat(&evil.uri("/own.txt")), b"own", "one holder needs no name");

    let held = |source: &str| {
        let lines = copy.run("ls", &["--json", "--source", source]).exits(0).json_lines();
        lines.iter().map(|line| (line["uri"] == *paper, line["foreign"] == true)).collect::<Vec<_>>()
    };
    assert_eq!(held(&list), [(true, false)]);
    assert!(held(&dump).iter().all(|(is_paper, is_foreign)| is_paper == is_foreign), "{:?}", held(&dump));
    let story = copy.run("explain", &[&paper, "--source", &dump]).exits(0).stdout;
    assert!(story.contains("another site"), "{story}");
    let story = copy.run("explain", &[&paper, "--source", &list]).exits(0).stdout;
    assert!(!story.contains("another site"), "{story}");
    let card = copy.run("report", &[&dump, "--json"]).exits(0).json();
    assert_eq!(card["coverage"]["foreign"], 1, "{card}");
    let card = copy.run("report", &[&dump]).exits(0);
    assert!(card.stdout.contains("of other sites"), "{card}");
}

#[tokio::test]
async fn to_read_one_source_opens_no_catalog_of_another() {
    let site = Site::start().await;
    let paper = site.serve("/paper.txt", "the paper");
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&paper, "")]));
    let other = site.serve("/other.xml", urlset(LIST, &[resource(&site.serve("/o.txt", "other"), "")]));
    let copy = Destination::directory();
    for url in [&list, &other] {
        sync(&copy, url, &[]).exits(0);
    }
    let other_id = model::SourceId::of_entry(&other.parse().unwrap());
    let catalog = std::path::Path::new(&copy.into).join(".thresher/catalogs").join(other_id.as_str());
    assert!(catalog.is_dir());
    // What cannot be opened fails each command that tries.
    std::fs::remove_dir_all(&catalog).unwrap();
    copy.run("ls", &["--json"]).exits(3);

    assert_eq!(copy.run("ls", &["--json", "--source", &list]).exits(0).json_lines().len(), 1);
    assert_eq!(copy.run("cat", &[&paper, "--source", &list]).exits(0).stdout, "the paper");
    copy.run("explain", &[&paper, "--source", &list]).exits(0);
    copy.run("problems", &["--source", &list]).exits(0);
    copy.run("report", &[&list]).exits(0);
}

#[tokio::test]
async fn origins_same_takes_nothing_of_other_sites_and_says_how_much_that_was() {
    let site = Site::start().await;
    let own = site.serve("/own.txt", "own");
    let foreign = named(&site.serve("/foreign.txt", "foreign"));
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&own, ""), resource(&foreign, "")]));
    for url in [list, dump(&site, &foreign)] {
        let copy = Destination::directory();
        let run = sync(&copy, &url, &["--origins", "same"]).exits(0).says(&["--origins same"]);
        assert_eq!((run.count("stored"), run.count("listed")), (1, 1), "{run}");
        assert_eq!((run.count("foreign"), run.count("foreign_left_out")), (0, 1), "{run}");
        assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), std::slice::from_ref(&own));

        // When they are wanted after all, they are read again.
        let run = sync(&copy, &url, &[]).exits(0);
        assert_eq!((run.count("foreign"), run.count("foreign_left_out")), (1, 0), "{run}");
        assert_eq!(copy.present().len(), 2, "{run}");
    }
}
