//! Discovery by every route of the specification, and routes that lead nowhere.

use crate::common::{Destination, Run, Site, resource, thresher, urlset};
use serde_json::Value;
use testkit::scripted::Reply;

const LIST: &str = "capability=\"resourcelist\" at=\"2026-11-01T00:00:00Z\"";
const CAPS: &str = "capability=\"capabilitylist\"";
const DESCRIPTION: &str = "capability=\"description\"";
const WELL_KNOWN: &str = "/.well-known/resourcesync";

/// A site without documents at the well-known places.
async fn bare() -> Site {
    let site = Site::start().await;
    for path in [WELL_KNOWN, "/robots.txt", "/"] {
        site.reply(path, Reply::status(404));
    }
    site
}

/// A document with `rs:ln` of its own, as pairs of relation and target.
fn linked(md: &str, links: &[(&str, &str)], entries: &[String]) -> String {
    let links: String =
        links.iter().map(|(rel, href)| format!("  <rs:ln rel=\"{rel}\" href=\"{href}\"/>\n")).collect();
    let document = urlset(md, entries);
    let at = document.find("/>\n").expect("an rs:md") + 3;
    format!("{}{links}{}", &document[..at], &document[at..])
}

fn index_of(md: &str, entries: &[String]) -> String {
    urlset(md, entries)
        .replace("<urlset", "<sitemapindex")
        .replace("</urlset", "</sitemapindex")
        .replace("<url>", "<sitemap>")
        .replace("</url>", "</sitemap>")
}

/// A set with one resource and a Resource List with `up`. Returns the URIs of Capability List, list and resource.
fn set(site: &Site, name: &str) -> [String; 3] {
    let path = format!("/{name}/caps.xml");
    let own = site.serve(&format!("/{name}/own.txt"), format!("of set {name}"));
    let list = linked(LIST, &[("up", &path)], &[resource(&own, "")]);
    let list = site.serve(&format!("/{name}/list.xml"), list);
    let caps = site.serve(&path, urlset(CAPS, &[resource(&list, "capability=\"resourcelist\"")]));
    [caps, list, own]
}

fn discover(url: &str) -> Run {
    Run::of(thresher().args(["discover", url, "--json"]))
}

/// The URLs of the sets.
#[track_caller]
fn sets(found: &Value) -> Vec<&str> {
    found["sets"].as_array().expect("sets").iter().filter_map(|set| set[0].as_str()).collect()
}

/// URL and route of each document.
#[track_caller]
fn routes(found: &Value) -> Vec<(&str, &str)> {
    let documents = found["documents"].as_array().expect("documents");
    documents.iter().filter_map(|one| Some((one["url"].as_str()?, one["route"].as_str()?))).collect()
}

#[track_caller]
fn hints(found: &Value) -> Vec<&str> {
    found["hints"].as_array().expect("hints").iter().filter_map(|hint| hint["hint"].as_str()).collect()
}

/// The one failure, which must contain all of these.
#[track_caller]
fn fails_with(found: &Value, url: &str, texts: &[&str]) {
    let failures = found["failures"].as_array().expect("failures");
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0]["url"], *url);
    let why = failures[0]["why"].as_str().expect("a reason");
    assert!(texts.iter().all(|text| why.contains(text)), "{texts:?} in {why}");
}

// Routes

#[tokio::test]
async fn a_source_description_index_leads_to_every_set() {
    let site = bare().await;
    let ([a, _, own_a], [b, _, own_b]) = (set(&site, "a"), set(&site, "b"));
    let mut descriptions = Vec::new();
    for (name, caps) in [("a", &a), ("b", &b)] {
        let description = urlset(DESCRIPTION, &[resource(caps, CAPS)]);
        descriptions.push(resource(&site.serve(&format!("/{name}/description.xml"), description), ""));
    }
    site.serve(WELL_KNOWN, index_of(DESCRIPTION, &descriptions));
    let run = discover(&site.uri("/")).exits(0);
    let found = run.json();
    assert_eq!(sets(&found), [&a, &b], "{run}");
    assert_eq!(found["requests"], 6, "robots.txt, index, two descriptions, two Capability Lists");
    assert_eq!(
        (found["documents"][0]["root"].as_str(), &found["documents"][0]["entries"]),
        (Some("sitemapindex"), &2.into())
    );
    assert_eq!(routes(&found)[0], (site.uri(WELL_KNOWN).as_str(), "well-known"));

    let text = Run::of(thresher().args(["discover", &site.uri("/")])).exits(0).stdout;
    let expected = [
        "description index  ",
        "├─ description  ",
        "│  └─ capabilitylist  ",
        "│     └─ resourcelist  ",
        "└─ description  ",
        "   └─ capabilitylist  ",
        "      └─ resourcelist  ",
    ];
    for (line, start) in text.lines().zip(expected) {
        assert!(line.starts_with(start), "{start:?} at the beginning of {line:?} in\n{text}");
    }
    assert!(text.ends_with("2 sets of resources, 6 requests\n"), "{text}");

    let copy = Destination::directory();
    copy.sync(&site.uri("/")).exits(0);
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), [own_a, own_b]);
}

#[tokio::test]
async fn a_link_header_leads_to_the_capability_list() {
    let site = bare().await;
    let [caps, _, own] = set(&site, "a");
    let page = Reply::ok("%PDF-1.7").header("content-type", "application/pdf");
    let page =
        page.header("link", "</other.css>; rel=preload, </wrong.xml>; rel=resourcesync; anchor=\"/other\"");
    let url = site.reply("/paper.pdf", page.header("link", format!("<{caps}>; rel=\"resourcesync\"")));
    let found = discover(&url).exits(0).json();
    assert_eq!(routes(&found), [(caps.as_str(), "link-header")]);
    assert_eq!(found["tried"][0]["route"], "well-known", "{found}");
    assert_eq!(found["tried"].as_array().map(Vec::len), Some(1), "a route that gives sets ends the search");
    let copy = Destination::directory();
    copy.sync(&url).exits(0);
    assert_eq!(copy.state(&own).as_deref(), Some("present"));
}

#[tokio::test]
async fn a_link_in_a_page_leads_to_the_capability_list_relative_to_its_base() {
    let site = bare().await;
    let [caps, ..] = set(&site, "a");
    let page = "<html><head><base href=\"/a/\"><link rel=\"resourcesync\" href=\"caps.xml\"></head></html>";
    for path in ["/", "/page"] {
        let url = site.serve(path, page);
        let found = discover(&url).exits(0).json();
        assert_eq!((sets(&found), routes(&found)), (vec![caps.as_str()], vec![(caps.as_str(), "html-link")]));
    }
}

#[tokio::test]
async fn a_link_far_down_in_a_page_is_not_looked_for() {
    let site = bare().await;
    let [caps, ..] = set(&site, "a");
    let page = |blanks| format!("<html><head>{}<link rel=resourcesync href=\"{caps}\">", " ".repeat(blanks));
    discover(&site.serve("/near", page(200 * 1024))).exits(0);
    discover(&site.serve("/far", page(256 * 1024))).exits(3);
}

#[tokio::test]
async fn a_site_that_sends_everybody_to_its_home_page_is_found_by_its_link() {
    let site = bare().await;
    let [caps, ..] = set(&site, "a");
    for path in [WELL_KNOWN, "/"] {
        site.reply(path, Reply::status(302).header("location", "/home"));
    }
    site.serve("/home", format!("<html><head><link rel=resourcesync href=\"{caps}\">"));
    let found = discover(&site.uri("/")).exits(0).json();
    assert_eq!(routes(&found), [(caps.as_str(), "html-link")]);
}

#[tokio::test]
async fn well_known_comes_before_the_links_of_a_page() {
    let site = bare().await;
    let ([a, ..], [b, ..]) = (set(&site, "a"), set(&site, "b"));
    site.serve(WELL_KNOWN, urlset(DESCRIPTION, &[resource(&a, CAPS)]));
    let page = Reply::ok("<html></html>").header("link", format!("<{b}>; rel=resourcesync"));
    let url = site.reply("/page", page);
    let found = discover(&url).exits(0).json();
    assert_eq!(sets(&found), [&a]);
    assert_eq!(site.requests_at("/b/caps.xml"), 0);
}

#[tokio::test]
async fn robots_txt_leads_to_lists_and_upwards_to_all_sets() {
    let site = bare().await;
    let ([a, list, _], [b, ..]) = (set(&site, "a"), set(&site, "b"));
    let capabilities = [resource(&list, "capability=\"resourcelist\"")];
    site.serve("/a/caps.xml", linked(CAPS, &[("up", "/description.xml")], &capabilities));
    site.serve("/description.xml", urlset(DESCRIPTION, &[resource(&a, CAPS), resource(&b, CAPS)]));
    site.serve("/robots.txt", format!("User-agent: *\nDisallow:\nSitemap: {list}\nSitemap: /b/list.xml\n"));
    let found = discover(&site.uri("/")).exits(0).json();
    assert_eq!(sets(&found), [&a, &b]);
    assert_eq!(site.requests_at("/a/caps.xml"), 1, "what was read on the way up is not read again");
    let parents: Vec<_> =
        found["documents"].as_array().unwrap().iter().map(|one| one["parent"].as_str()).collect();
    let description = site.uri("/description.xml");
    assert_eq!(
        parents,
        [Some(a.as_str()), Some(&description), None, Some(&description), Some(&b)],
        "{found}"
    );
    let text = Run::of(thresher().args(["discover", &site.uri("/")])).exits(0).stdout;
    assert!(text.starts_with(&format!("description  {description}  (up, ")), "{text}");
    assert!(text.contains(&format!("│  └─ resourcelist  {list}  (robots, ")), "{text}");
}

#[tokio::test]
async fn robots_txt_may_name_plain_sitemaps_capability_lists_and_parts_of_an_index() {
    let site = bare().await;
    let [caps, ..] = set(&site, "a");
    let own = site.serve("/own.txt", "own");
    let plain = site.serve("/sitemap.xml", urlset("", &[resource(&own, "")]));
    let part = site.serve("/part.xml", linked(LIST, &[("index", "index.xml")], &[resource(&own, "")]));
    let index = site.serve("/index.xml", index_of(LIST, &[resource(&part, "")]));
    let lines = [&plain, &caps, &part].map(|url| format!("Sitemap: {url}\n")).concat();
    site.serve("/robots.txt", lines);
    let found = discover(&site.uri("/")).exits(0).json();
    assert_eq!(sets(&found), [&plain, &caps, &index]);
    assert!(hints(&found).contains(&"plain-sitemap"), "{found}");
}

#[tokio::test]
async fn a_document_that_is_given_is_a_set_of_its_own_and_what_is_above_it_is_only_told() {
    let site = bare().await;
    let [caps, ..] = set(&site, "a");
    let links = [("up", caps.as_str()), ("index", "index.xml")];
    let url = site.serve("/a/part.xml", linked("capability=\"resourcelist\"", &links, &[]));
    let found = discover(&url).exits(0).json();
    assert_eq!(sets(&found), [&url]);
    assert_eq!(found["requests"], 1);
    assert_eq!(hints(&found), ["no-at", "up", "index"]);
    assert_eq!(found["documents"][0]["up"], *caps);
    assert_eq!(found["documents"][0]["index"], *site.uri("/a/index.xml"));
}

// Declarations of a document about itself

#[tokio::test]
async fn relative_uris_are_resolved_where_the_document_was_found() {
    let site = bare().await;
    let [_, list, own] = set(&site, "a");
    site.serve("/a/caps.xml", urlset(CAPS, &[resource("list.xml", "capability=\"resourcelist\"")]));
    site.serve("/a/description.xml", urlset(DESCRIPTION, &[resource("caps.xml", CAPS)]));
    site.reply(WELL_KNOWN, Reply::status(302).header("location", "/a/description.xml"));
    let found = discover(&site.uri("/")).exits(0).json();
    assert_eq!(found["sets"][0][1]["capabilities"][0]["uri"], *list, "{found}");
    assert_eq!(found["documents"][0]["quirks"]["relative-uri"], 1, "{found}");
    let copy = Destination::directory();
    copy.sync(&site.uri("/")).exits(0);
    assert_eq!(copy.state(&own).as_deref(), Some("present"));
}

#[tokio::test]
async fn sizes_validators_and_what_is_missing_are_shown() {
    let site = bare().await;
    let caps =
        urlset(CAPS, &[resource("list.xml", "capability=\"resourcelist\""), resource("other.xml", "")]);
    let length = caps.len();
    let url = site.reply("/caps.xml", Reply::ok(caps).header("etag", "\"v1\""));
    let found = discover(&url).exits(0).json();
    let document = &found["documents"][0];
    assert_eq!(
        (&document["validators"]["etag"], &document["content_length"]),
        (&"\"v1\"".into(), &length.into())
    );
    assert_eq!((&document["entries"], &document["route"]), (&2.into(), &"given".into()));
    assert_eq!(hints(&found), ["entries-without-capability", "no-change-list"]);
    let text = Run::of(thresher().args(["discover", &url])).exits(0).stdout;
    assert!(text.contains("ETag \"v1\"") && text.contains("every run has to read all of it"), "{text}");
}

#[tokio::test]
async fn documents_that_do_not_say_what_they_are_are_known_by_their_entries() {
    let site = bare().await;
    let [caps, list, _] = set(&site, "a");
    site.serve("/a/caps.xml", urlset("", &[resource(&list, "capability=\"resourcelist\"")]));
    site.serve(WELL_KNOWN, urlset("", &[resource(&caps, CAPS)]));
    let found = discover(&site.uri("/")).exits(0).json();
    assert_eq!(found["sets"][0][1]["capabilities"][0]["uri"], *list, "{found}");
    assert_eq!(hints(&found).iter().filter(|hint| **hint == "no-capability").count(), 2);
}

// Failures

#[tokio::test]
async fn a_circle_is_told_and_the_rest_is_found() {
    let site = bare().await;
    let [caps, ..] = set(&site, "a");
    let inner = site.serve("/inner.xml", index_of(DESCRIPTION, &[resource(&site.uri(WELL_KNOWN), "")]));
    let well_known =
        site.serve(WELL_KNOWN, index_of(DESCRIPTION, &[resource(&inner, ""), resource(&caps, CAPS)]));
    let found = discover(&well_known).exits(1).json();
    fails_with(&found, &well_known, &[&inner, "circle"]);
    assert_eq!(sets(&found), [&caps]);
    assert_eq!(site.requests_at(WELL_KNOWN), 1);
}

#[tokio::test]
async fn a_circle_on_the_way_up_is_told_and_the_list_is_taken_itself() {
    let site = bare().await;
    let own = site.serve("/own.txt", "own");
    let one = site.serve("/one.xml", linked(LIST, &[("index", "/two.xml")], &[resource(&own, "")]));
    let two = index_of(LIST, &[resource(&one, "")])
        .replace("<sitemap>", "<rs:ln rel=\"up\" href=\"/one.xml\"/><sitemap>");
    let two = site.serve("/two.xml", two);
    site.serve("/robots.txt", "Sitemap: /one.xml");
    let found = discover(&site.uri("/")).exits(1).json();
    fails_with(&found, &one, &[&two, "circle"]);
    assert_eq!(sets(&found), [&two], "the index has all its parts");
}

#[tokio::test]
async fn a_chain_without_end_is_told() {
    let site = bare().await;
    for n in 0..20 {
        let next = resource(&site.uri(&format!("/{}.xml", n + 1)), "");
        site.serve(&format!("/{n}.xml"), index_of(DESCRIPTION, &[next]));
    }
    let run = discover(&site.uri("/0.xml")).exits(3).complains(&["/8.xml", "chain without end"], &["give"]);
    assert_eq!(site.paths().len(), 8, "{run}");
}

#[tokio::test]
async fn another_kind_than_a_capability_list_is_told_and_taken_for_what_it_is() {
    let site = bare().await;
    let ([caps, list, _], [_, other, own]) = (set(&site, "a"), set(&site, "b"));
    let entries = [resource(&caps, CAPS), resource(&other, CAPS)];
    let well_known = site.serve(WELL_KNOWN, urlset(DESCRIPTION, &entries));
    let found = discover(&site.uri("/")).exits(1).json();
    fails_with(&found, &other, &[&well_known, "Capability List", "resourcelist"]);
    assert_eq!(sets(&found), [&caps, &other]);
    let copy = Destination::directory();
    copy.sync(&site.uri("/")).exits(0);
    assert_eq!(copy.state(&own).as_deref(), Some("present"));
    assert_eq!(site.requests_at("/a/list.xml"), 1, "{list}");
}

#[tokio::test]
async fn an_up_that_leads_to_another_kind_is_told_and_the_list_is_taken_itself() {
    let site = bare().await;
    let [_, other, _] = set(&site, "a");
    let list = site.serve("/list.xml", linked(LIST, &[("up", &other)], &[]));
    site.serve("/robots.txt", "Sitemap: /list.xml");
    let found = discover(&site.uri("/")).exits(1).json();
    fails_with(&found, &other, &[&list, "`up`", "resourcelist"]);
    assert_eq!(sets(&found), [&list]);
}

#[tokio::test]
async fn a_set_that_is_gone_costs_only_itself() {
    let site = bare().await;
    let [caps, ..] = set(&site, "a");
    let gone = site.reply("/gone.xml", Reply::status(404));
    let page = site.serve("/page.html", "<html><head><title>A page</title></head></html>");
    let entries = [resource(&gone, CAPS), resource(&page, CAPS), resource(&caps, CAPS)];
    site.serve(WELL_KNOWN, urlset(DESCRIPTION, &entries));
    let run = discover(&site.uri("/")).exits(1);
    let found = run.json();
    assert_eq!(
        (sets(&found), found["failures"].as_array().unwrap().len()),
        (vec![caps.as_str()], 2),
        "{run}"
    );
}

#[tokio::test]
async fn a_capability_list_beyond_the_limit_is_read_up_to_it_and_told() {
    let site = bare().await;
    let entries: Vec<_> =
        (0..50_010).map(|n| resource(&format!("http://e.org/{n}"), "capability=\"changelist\"")).collect();
    let url = site.serve("/caps.xml", urlset(CAPS, &entries));
    let found = discover(&url).exits(1).json();
    fails_with(&found, &url, &["more than 50000 entries"]);
    assert_eq!(found["documents"][0]["entries"], 50_000);
}

#[tokio::test]
async fn more_documents_than_any_source_has_are_not_asked_for() {
    let site = bare().await;
    let entries: Vec<_> = (0..1_010)
        .map(|n| {
            let path = format!("/{n}.xml");
            resource(
                &site.serve(&path, urlset(CAPS, &[resource("list.xml", "capability=\"resourcelist\"")])),
                CAPS,
            )
        })
        .collect();
    site.serve(WELL_KNOWN, urlset(DESCRIPTION, &entries));
    let found = discover(&site.uri("/")).exits(1).json();
    fails_with(&found, &site.uri("/999.xml"), &["at most 1000 documents"]);
    assert_eq!((sets(&found).len(), site.paths().len()), (999, 1000));
}

// Archives

/// The form of the examples of ResourceSync Archives: all eight capabilities; snapshots with `at`, changes with `from`
/// and `until`, the oldest first, or with `lastmod` only; Change Dumps that begin early and overlap; one Archive by
/// two URIs.
#[tokio::test]
async fn arc_1_all_four_archives_are_known_with_the_oddities_of_their_examples() {
    let site = bare().await;
    let [_, list, own] = set(&site, "a");
    let past = |name: &str, times: &str| resource(&site.uri(&format!("/old/{name}.xml")), times);
    let month = |n: u8| format!("2013-0{n}-01T00:00:00Z");
    let between = |from: u8, until: u8| format!("from=\"{}\" until=\"{}\"", month(from), month(until));
    let snapshot = |n: u8| format!("at=\"{}\" completed=\"{}\"", month(n), month(n).replace("T00", "T03"));
    let dated = |n: u8| {
        let lastmod = format!("</loc><lastmod>{}</lastmod>", month(n));
        past(&format!("list{n}"), "").replace("</loc>", &lastmod)
    };
    let early = format!("from=\"2012-01-01T00:00:00Z\" until=\"{}\"", month(2));
    let archives = [
        ("resourcelist-archive", [dated(1), dated(2)]),
        ("resourcedump-archive", [past("dump1", &snapshot(1)), past("dump2", &snapshot(2))]),
        ("changelist-archive", [past("changes1", &between(1, 2)), past("changes2", &between(2, 3))]),
        ("changedump-archive", [past("changed1", &early), past("changed2", &between(1, 3))]),
    ];
    let mut entries = vec![resource(&list, "capability=\"resourcelist\"")];
    for (capability, entries_of_it) in &archives {
        let md = format!("capability=\"{capability}\"");
        let up = format!("<rs:ln rel=\"up\" href=\"{}\"/>  <rs:md", site.uri("/a/caps.xml"));
        let document = urlset(&md, entries_of_it).replacen("  <rs:md", &up, 1);
        entries.push(resource(&site.serve(&format!("/{capability}.xml"), document), &md));
    }
    // The same Archive, spelt otherwise.
    let md = "capability=\"changelist-archive\"";
    let again = urlset(md, &archives[2].1);
    entries.push(resource(&site.serve("/changelistarchive.xml", again), md));
    let caps = site.serve("/a/caps.xml", urlset(CAPS, &entries));

    let found = discover(&caps).exits(0).json();
    let shown: Vec<_> = found["archives"]
        .as_array()
        .unwrap()
        .iter()
        .map(|archive| {
            let text = |name: &str| archive[name].as_str().map(str::to_owned);
            (text("capability").unwrap(), archive["documents"].as_u64().unwrap(), text("from"), text("until"))
        })
        .collect();
    let expected = |capability: &str, from: &str, until: &str| {
        (capability.to_owned(), 2, Some(from.to_owned()), Some(until.to_owned()))
    };
    let completed = month(2).replace("T00", "T03");
    assert_eq!(
        shown,
        [
            expected("resourcelist-archive", &month(1), &month(2)),
            expected("resourcedump-archive", &month(1), &completed),
            expected("changelist-archive", &month(1), &month(3)),
            expected("changedump-archive", "2012-01-01T00:00:00Z", &month(3)),
            expected("changelist-archive", &month(1), &month(3)),
        ],
        "{found}"
    );
    assert_eq!((hints(&found), &found["failures"]), (vec!["no-change-list"], &Value::Array(Vec::new())));
    for (capability, _) in &archives {
        let read = Run::of(thresher().args(["inspect", &site.uri(&format!("/{capability}.xml"))]));
        let quirks = read.exits(0).json_lines().pop().unwrap()["quirks"].clone();
        assert_eq!(quirks, Value::Object(Default::default()), "{capability}");
    }
    let copy = Destination::directory();
    let run = copy.sync(&caps).exits(0);
    assert_eq!(
        (copy.state(&own).as_deref(), &run.json()["in_sync"]),
        (Some("present"), &true.into()),
        "{run}"
    );
    assert_eq!(site.requests_at("/old/dump1.xml"), 0);
}

/// A list points back to its Archive, which the Capability List does not name; DSpace's is an index of Change Lists.
#[tokio::test]
async fn arc_2_an_archive_is_found_by_a_back_link_and_may_be_an_index_of_change_lists() {
    let site = bare().await;
    let time = |day: u8| format!("2026-01-0{day}T00:00:00Z");
    let interval = |day: u8| format!("from=\"{}\" until=\"{}\"", time(day), time(day + 1));
    let past: Vec<String> =
        (1..=3).map(|day| resource(&site.uri(&format!("/old-{day}.xml")), &interval(day))).collect();
    let index = site.serve("/past.xml", index_of("capability=\"changelistindex\"", &past));
    let back = format!("<rs:ln rel=\"archives\" href=\"{index}\"/>  <rs:md");
    let md = format!("capability=\"changelist\" from=\"{}\"", time(4));
    let changes = site.serve("/changes.xml", urlset(&md, &[]).replacen("  <rs:md", &back, 1));
    let expected = (3, Some(time(1)), Some(time(4)));
    let shown = |found: &Value| {
        let [archive] = found["archives"].as_array().unwrap().as_slice() else { panic!("{found}") };
        assert_eq!(
            (&archive["capability"], &archive["trouble"]),
            (&"changelist-archive".into(), &Value::Null)
        );
        let text = |name: &str| archive[name].as_str().map(str::to_owned);
        (archive["documents"].as_u64().unwrap(), text("from"), text("until"))
    };
    assert_eq!(shown(&discover(&changes).exits(0).json()), expected);

    // The same, announced as an Archive.
    let [_, list, _] = set(&site, "a");
    let entries = [
        resource(&list, "capability=\"resourcelist\""),
        resource(&index, "capability=\"changelist-archive\""),
    ];
    let caps = site.serve("/a/caps.xml", urlset(CAPS, &entries));
    assert_eq!(shown(&discover(&caps).exits(0).json()), expected);
}

/// ARC-3: `discover` reads what a Source offers of its past, and a harvest does not ask for it.
#[tokio::test]
async fn arc_3_archives_are_shown_with_their_times_and_are_no_fault_of_the_set() {
    let site = bare().await;
    let [_, list, own] = set(&site, "a");
    let snapshot = |day: u8| resource(&format!("{list}?{day}"), &format!("at=\"2026-01-0{day}T00:00:00Z\""));
    let lists = "capability=\"resourcelist-archive\"";
    let parts = [[snapshot(1), snapshot(2)], [snapshot(3), snapshot(4)]];
    let parts =
        [0, 1].map(|at| resource(&site.serve(&format!("/old-{at}.xml"), urlset(lists, &parts[at])), ""));
    let index = site.serve("/old.xml", index_of(lists, &parts));
    let changes = resource(&list, "from=\"2026-01-01T00:00:00Z\" until=\"2026-01-02T00:00:00Z\"");
    let changes = site.serve("/changes.xml", urlset("capability=\"changelist-archive\"", &[changes]));
    let gone = site.reply("/gone.xml", Reply::status(404));
    let other = site.serve("/other.xml", urlset(LIST, &[]));
    let entries = [
        resource(&list, "capability=\"resourcelist\""),
        resource(&index, lists),
        resource(&changes, "capability=\"changelist-archive\""),
        resource(&gone, "capability=\"changedump-archive\""),
        resource(&other, "capability=\"resourcedump-archive\""),
    ];
    let caps = site.serve("/a/caps.xml", urlset(CAPS, &entries));

    let found = discover(&caps).exits(0).json();
    let archives = found["archives"].as_array().unwrap();
    let shown: Vec<_> = archives
        .iter()
        .map(|archive| {
            (archive["documents"].as_u64().unwrap(), archive["from"].as_str(), archive["until"].as_str())
        })
        .collect();
    let day = |day: &'static str| Some(day);
    assert_eq!(
        shown,
        [
            (4, day("2026-01-01T00:00:00Z"), day("2026-01-04T00:00:00Z")),
            (1, day("2026-01-01T00:00:00Z"), day("2026-01-02T00:00:00Z")),
            (0, None, None),
            (0, None, None),
        ],
        "{found}"
    );
    let trouble = |at: usize| archives[at]["trouble"].as_str();
    assert!(trouble(0).is_none() && trouble(2).unwrap().contains("404"), "{found}");
    assert!(trouble(3).unwrap().contains("is a resourcelist"), "{found}");
    assert_eq!((hints(&found), &found["failures"]), (vec!["no-change-list"], &Value::Array(Vec::new())));
    let text = Run::of(thresher().args(["discover", &caps])).exits(0).stdout;
    let line = format!(
        "resourcelist-archive  {index}  (4 documents, from 2026-01-01T00:00:00Z, until 2026-01-04T00:00:00Z)"
    );
    assert!(text.contains(&line), "{text}");

    let before = site.requests_at("/old.xml");
    let copy = Destination::directory();
    copy.sync(&caps).exits(0);
    assert_eq!((copy.state(&own).as_deref(), site.requests_at("/old.xml")), (Some("present"), before));

    let inspected = Run::of(thresher().args(["inspect", &changes])).exits(0).json_lines();
    assert_eq!(
        (&inspected[0]["capability"], &inspected[2]["quirks"]),
        (&"changelist-archive".into(), &Value::Object(Default::default()))
    );
}

#[tokio::test]
async fn where_nothing_leads_anywhere_every_place_is_named() {
    let site = bare().await;
    let url = site.serve("/", "<html><head></head></html>");
    let run = discover(&url).exits(3).complains(&[&url, "HTML", WELL_KNOWN, "robots.txt"], &["give"]);
    // At last, the page may be the base URL of an OAI-PMH repository.
    let places = [WELL_KNOWN, "/", "/.well-known/api-catalog", "/sitemap.xml", "/?verb=Identify"];
    assert_eq!(site.paths(), places, "{run}");
    assert_eq!(site.requests_at("/robots.txt"), 1, "what was asked for politeness is not asked again: {run}");
}

#[tokio::test]
async fn a_set_that_cannot_be_found_out_is_a_problem_and_the_others_are_harvested() {
    let site = Site::start().await;
    let list = |name: &str| {
        let body = site.serve(&format!("/{name}.txt"), name);
        let md = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
        let list = site.serve(&format!("/{name}-list.xml"), urlset(md, &[resource(&body, "")]));
        let entry = resource(&list, "capability=\"resourcelist\"");
        site.serve(&format!("/{name}.xml"), urlset("capability=\"capabilitylist\"", &[entry]))
    };
    let one = list("one");
    let two = list("two");
    let entries = [&one, &two].map(|uri| resource(uri, "capability=\"capabilitylist\""));
    site.serve("/.well-known/resourcesync", urlset("capability=\"description\"", &entries));
    site.reply("/two.xml", Reply::status(404));
    let copy = Destination::directory();
    let run = copy.sync(&site.uri("/")).exits(1).says(&[&two, "was not harvested"]);
    assert_eq!(run.count("stored"), 1, "{run}");

    list("two");
    let run = copy.sync(&site.uri("/")).exits(0);
    assert_eq!((run.count("stored"), copy.present().len()), (1, 2), "{run}");
}
