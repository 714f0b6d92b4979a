//! The way in is a closed Change List: later changes are found by its `index`, else by its `up`.

use super::{Case, declares, ln, time};
use crate::common::{Destination, Run, Site, resource, thresher, urlset};
use serde_json::Value;

/// Serves a Change List that begins at a day, with links of its own. It is closed where it ends at a day.
fn changes(
    site: &Site,
    path: &str,
    (from, until): (u8, Option<u8>),
    links: &[&str],
    entries: &[String],
) -> String {
    let until = until.map_or(String::new(), |day| format!(" until=\"{}\"", time(day)));
    let md = format!("capability=\"changelist\" from=\"{}\"{until}", time(from));
    site.serve(path, with_links(&urlset(&md, entries), links))
}

/// Serves an index of Change Lists: path, start and end of each.
fn index(
    site: &Site,
    path: &str,
    until: Option<u8>,
    links: &[&str],
    parts: &[(&str, u8, Option<u8>)],
) -> String {
    let end = |day: Option<u8>| day.map_or(String::new(), |day| format!(" until=\"{}\"", time(day)));
    let entries: Vec<String> = parts
        .iter()
        .map(|(path, from, until)| {
            resource(&site.uri(path), &format!("from=\"{}\"{}", time(*from), end(*until)))
        })
        .collect();
    let md = format!("capability=\"changelist\" from=\"{}\"{}", time(1), end(until));
    let document = with_links(&urlset(&md, &entries), links);
    let document = document.replace("urlset", "sitemapindex").replace("url>", "sitemap>");
    site.serve(path, document)
}

fn with_links(document: &str, links: &[&str]) -> String {
    document.replacen("  <rs:md", &(links.concat() + "  <rs:md"), 1)
}

fn created(uri: &str, day: u8, content: &str) -> String {
    resource(uri, &format!("change=\"created\" datetime=\"{}\" {}", time(day), declares(content)))
}

fn discover(url: &str, options: &[&str]) -> Run {
    Run::of(thresher().args([&["discover", url, "--json"], options].concat()))
}

#[track_caller]
fn hints(found: &Value) -> Vec<&str> {
    found["hints"].as_array().expect("hints").iter().filter_map(|hint| hint["hint"].as_str()).collect()
}

/// The one failure of a discovery.
#[track_caller]
fn fails_at(found: &Value, url: &str, text: &str) {
    let failures = found["failures"].as_array().expect("failures");
    assert_eq!(failures.len(), 1, "{found}");
    assert_eq!(failures[0]["url"], *url, "{found}");
    let why = failures[0]["why"].as_str().expect("a reason");
    assert!(why.contains(text), "{text} in {why}");
}

#[tokio::test]
async fn lnk_14_t1_a_closed_list_leads_to_its_index_and_later_lists_are_applied() {
    let case = Case::new().await;
    let site = &case.site;
    let [a, b] = ["/a", "/b"].map(|path| site.serve(path, path));
    let way_in =
        changes(site, "/1.xml", (1, Some(2)), &[&ln("index", "/ix.xml", "")], &[created(&a, 1, "/a")]);
    let second = |entries: &[String]| changes(site, "/2.xml", (2, None), &[], entries);
    second(&[created(&b, 2, "/b")]);
    index(site, "/ix.xml", None, &[], &[("/1.xml", 1, Some(2)), ("/2.xml", 2, None)]);

    let found = discover(&way_in, &[]).exits(0).json();
    let [set] = found["sets"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!(set[0], *way_in, "the set keeps the name of the given list: {found}");
    let named: Vec<_> = set[1]["capabilities"].as_array().unwrap().iter().map(|one| &one["uri"]).collect();
    assert_eq!(named, [&way_in, &site.uri("/ix.xml")], "{found}");

    let run = case.sync(&way_in).exits(0);
    assert_eq!((run.count("stored"), run.json()["in_sync"].as_bool()), (2, Some(true)), "{run}");
    let deleted = resource(&b, &format!("change=\"deleted\" datetime=\"{}\"", time(3)));
    site.serve("/a", "other");
    second(&[created(&b, 2, "/b"), deleted, created(&a, 4, "other").replace("created", "updated")]);
    let run = case.sync(&way_in).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (1, 1), "{run}");
    assert_eq!((case.copy.cat(&a), case.copy.state(&b).as_deref()), (b"other".to_vec(), Some("deleted")));
}

#[tokio::test]
async fn lnk_14_t1_a_list_that_is_closed_later_goes_on_in_the_same_set() {
    let case = Case::new().await;
    let site = &case.site;
    let [a, b] = ["/a", "/b"].map(|path| site.serve(path, path));
    let up_and_index = ln("index", "/ix.xml", "");
    let first = |until| changes(site, "/1.xml", (1, until), &[&up_and_index], &[created(&a, 1, "/a")]);
    let way_in = first(None);
    case.sync(&way_in).exits(0);
    assert_eq!(site.requests_at("/ix.xml"), 0, "an open list tells later changes itself");

    first(Some(2));
    changes(site, "/2.xml", (2, None), &[], &[created(&b, 2, "/b")]);
    index(site, "/ix.xml", None, &[], &[("/1.xml", 1, Some(2)), ("/2.xml", 2, None)]);
    let run = case.copy.sync_with(&way_in, &["--rediscover"]).exits(0);
    assert_eq!((run.count("stored"), run.count("absent"), run.count("deleted")), (1, 0, 0), "{run}");
    assert_eq!(case.copy.present().into_keys().collect::<Vec<_>>(), [a, b]);
    assert_eq!(site.requests_at("/a"), 1);
}

#[tokio::test]
async fn lnk_14_t2_without_an_index_later_lists_are_found_by_up() {
    let case = Case::new().await;
    let site = &case.site;
    let [a, b, other] = ["/a", "/b", "/other"].map(|path| site.serve(path, path));
    let way_in =
        changes(site, "/1.xml", (1, Some(2)), &[&ln("up", "/caps.xml", "")], &[created(&a, 1, "/a")]);
    let open = changes(site, "/2.xml", (2, None), &[], &[created(&b, 2, "/b")]);
    let list = case.list(1, &[resource(&other, &declares("/other"))]);
    let entries =
        [resource(&list, "capability=\"resourcelist\""), resource(&open, "capability=\"changelist\"")];
    let caps = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &entries));

    let found = discover(&way_in, &[]).exits(0).json();
    assert_eq!(hints(&found), ["not-named-above"], "the Capability List names the newest list only: {found}");
    assert_eq!(found["documents"][0]["parent"], *caps, "{found}");
    let run = case.sync(&way_in).exits(0);
    assert_eq!(run.count("stored"), 2, "{run}");
    assert_eq!(case.copy.present().into_keys().collect::<Vec<_>>(), [a, b]);
    assert_eq!(site.requests_at("/list.xml"), 0, "a Change List was given, and no set");
    assert_eq!(case.sync(&way_in).exits(0).count("stored"), 0);
}

#[tokio::test]
async fn lnk_14_t3_a_circle_ends_after_two_requests_in_words() {
    let case = Case::new().await;
    let site = &case.site;
    let a = site.serve("/a", "/a");
    let way_in =
        changes(site, "/1.xml", (1, Some(2)), &[&ln("index", "/ix.xml", "")], &[created(&a, 1, "/a")]);
    index(site, "/ix.xml", Some(2), &[&ln("up", "/1.xml", "")], &[("/1.xml", 1, Some(2))]);
    let found = discover(&way_in, &[]).exits(1).json();
    fails_at(&found, &way_in, "circle");
    assert_eq!(site.paths(), ["/1.xml", "/ix.xml"]);

    // What is named is harvested, and each run looks again for later lists.
    assert_eq!(case.sync(&way_in).exits(0).count("stored"), 1);
    index(site, "/ix.xml", None, &[], &[("/1.xml", 1, Some(2)), ("/2.xml", 2, None)]);
    let b = site.serve("/b", "/b");
    changes(site, "/2.xml", (2, None), &[], &[created(&b, 2, "/b")]);
    case.sync(&way_in).exits(0);
    assert_eq!(case.copy.present().into_keys().collect::<Vec<_>>(), [a, b]);
}

#[tokio::test]
async fn lnk_14_up_to_itself_or_nowhere_is_told_and_costs_no_request() {
    for links in [vec![ln("up", "/1.xml", ""), ln("index", "/1.xml", "")], Vec::new()] {
        let case = Case::new().await;
        let a = case.site.serve("/a", "/a");
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let way_in = changes(&case.site, "/1.xml", (1, Some(2)), &links, &[created(&a, 1, "/a")]);
        let found = discover(&way_in, &[]).exits(0).json();
        assert_eq!((&found["requests"], hints(&found)), (&1.into(), vec!["closed-without-next"]), "{found}");
        assert_eq!(case.sync(&way_in).exits(0).count("stored"), 1);
    }
}

#[tokio::test]
async fn lnk_14_another_host_is_told_and_followed_once() {
    let site = Site::start().await;
    let [a, b] = ["/a", "/b"].map(|path| site.serve(path, path));
    let elsewhere = site.uri("/ix.xml").replace("127.0.0.1", "localhost");
    let way_in =
        changes(&site, "/1.xml", (1, Some(2)), &[&ln("index", &elsewhere, "")], &[created(&a, 1, "/a")]);
    changes(&site, "/2.xml", (2, Some(3)), &[], &[created(&b, 2, "/b")]);
    let parts = [("/1.xml", 1, Some(2)), ("/2.xml", 2, Some(3))];
    index(&site, "/ix.xml", Some(3), &[&ln("up", "/caps.xml", "")], &parts);
    let allowed = ["--allow-address", "127.0.0.0/8"];
    let found = discover(&way_in, &allowed).exits(0).json();
    assert_eq!(hints(&found), ["other-host"], "{found}");
    let copy = Destination::directory();
    assert_eq!(copy.sync_with(&way_in, &allowed).exits(0).count("stored"), 2);
    assert_eq!(site.requests_at("/caps.xml"), 0);
}

#[tokio::test]
async fn lnk_14_the_way_to_later_lists_needs_the_same_permission_as_an_entry() {
    // By a name, a Source on this machine leads to no other port of it.
    let by_name = |uri: String| uri.replace("127.0.0.1", "localhost");
    let [site, other] = [Site::start().await, Site::start().await];
    let next = by_name(other.serve("/ix.xml", "never"));
    let way_in = by_name(changes(&site, "/1.xml", (1, Some(2)), &[&ln("index", &next, "")], &[]));
    let found = discover(&way_in, &[]).exits(1).json();
    fails_at(&found, &next, "address");
    assert!(other.requests().is_empty(), "{found}");
}

#[tokio::test]
async fn lnk_14_another_kind_above_is_told_and_the_list_is_taken_itself() {
    let case = Case::new().await;
    let site = &case.site;
    let a = site.serve("/a", "/a");
    let list = case.list(1, &[]);
    for rel in ["index", "up"] {
        let way_in = changes(site, "/1.xml", (1, Some(2)), &[&ln(rel, &list, "")], &[created(&a, 1, "/a")]);
        let found = discover(&way_in, &[]).exits(1).json();
        fails_at(&found, &list, "resourcelist");
        assert_eq!(found["sets"][0][1]["capabilities"].as_array().map(Vec::len), Some(1), "{found}");
    }
}

#[tokio::test]
async fn lnk_14_a_chain_of_indexes_ends_after_three() {
    let site = Site::start().await;
    let way_in = changes(&site, "/1.xml", (1, Some(2)), &[&ln("index", "/ix1.xml", "")], &[]);
    for n in 1..9 {
        let next = ln("index", &format!("/ix{}.xml", n + 1), "");
        index(&site, &format!("/ix{n}.xml"), Some(2), &[&next], &[("/1.xml", 1, Some(2))]);
    }
    let found = discover(&way_in, &[]).exits(1).json();
    fails_at(&found, &site.uri("/ix4.xml"), "3 documents");
    assert_eq!(site.paths(), ["/1.xml", "/ix1.xml", "/ix2.xml", "/ix3.xml"]);
}
