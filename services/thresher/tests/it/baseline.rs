//! The first harvest fetches all of a Source, and the second one nothing.

use crate::common::{Destination, Process, Run, Site, requests_at, resource, source, thresher, urlset};
use simulated_source::{Changes, SimulatedSource, Size, SourceSpec};
use testkit::scripted::Reply;

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

fn small(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(0, 600))
}

/// Harvests twice: the first run stores everything, and the second one requests nothing.
#[track_caller]
fn harvested_whole_and_only_once(source: &SimulatedSource, way_in: &str) -> Destination {
    let copy = Destination::directory();
    let first = copy.sync(way_in).exits(0);
    assert_eq!(first.json()["in_sync"], true, "{first}");
    assert_eq!((first.count("listed"), first.count("stored")), (source.len(), source.len()), "{first}");
    assert_eq!((first.count("failed"), first.count("deleted")), (0, 0), "{first}");
    copy.mirrors(source);
    assert_eq!(source.requests().resources, source.len(), "one request for each resource");

    source.reset_requests();
    let second = copy.sync(way_in).exits(0);
    assert_eq!(source.requests().resources, 0, "a second run fetches nothing: {second}");
    assert_eq!((second.count("stored"), second.count("bytes")), (0, 0), "{second}");
    copy.mirrors(source);
    copy
}

#[tokio::test]
async fn every_resource_of_a_source_is_copied_byte_for_byte() {
    let source = source(small(300)).await;
    let copy = harvested_whole_and_only_once(&source, &source.well_known());
    for now in source.expected().take(5) {
        assert_eq!(Some(copy.cat(&now.uri)), source.body(&now.uri), "cat {}", now.uri);
    }
    let host = source.url().replace("http://", "").replace(':', "+");
    assert!(copy.view().keys().all(|file| file.starts_with(&format!("{host}/set/resources/"))));
}

#[tokio::test]
async fn a_summary_for_people_says_how_it_went_and_where_it_lies() {
    let source = source(small(30)).await;
    let copy = Destination::directory();
    let run = copy.run("sync", &[&source.url()]).exits(0);
    assert!(run.stderr.contains("In sync") && run.stderr.contains("30"), "{run}");
    assert!(run.stderr.contains(&copy.into), "{run}");
    assert!(!run.stderr.contains('\u{1b}') && !run.stderr.contains('\r'), "no terminal, no drawing: {run}");
    assert_eq!(run.stdout, "", "nothing but --json writes to standard output: {run}");
}

#[tokio::test]
async fn the_json_summary_has_every_field_of_the_design() {
    let source = source(small(30)).await;
    let copy = Destination::directory();
    let run = copy.sync(&source.well_known()).exits(0);
    let json = run.json();
    assert_eq!(json["source"], source.well_known());
    assert_eq!(json["mode"], "baseline");
    assert!(json["run"].is_string() && json["quirks"].is_object(), "{json}");
    let bytes: u64 = source.expected().map(|now| now.length).sum();
    let log = source.requests();
    let expected = [
        ("listed", 30),
        ("stored", 30),
        ("unchanged", 0),
        ("deleted", 0),
        ("failed", 0),
        ("gaps", 0),
        ("bytes", bytes),
        ("requests", log.documents + log.resources),
    ];
    for (name, expected) in expected {
        assert_eq!(run.count(name), expected, "{name} in {json}");
    }
    assert!(json["duration_ms"].is_u64(), "{json}");
}

#[tokio::test]
async fn a_list_in_several_parts_is_harvested_whole() {
    let source = source(small(300).entries_per_list(70)).await;
    harvested_whole_and_only_once(&source, &source.well_known());
}

#[tokio::test]
async fn gzip_documents_are_read_like_plain_ones() {
    let source = source(small(120).entries_per_list(50).gzip(true)).await;
    harvested_whole_and_only_once(&source, &source.well_known());
}

#[tokio::test]
async fn every_way_in_leads_to_the_same_resources() {
    let source = source(small(20)).await;
    for way_in in [source.url(), source.capability_list(), source.resource_list()] {
        source.reset_requests();
        harvested_whole_and_only_once(&source, &way_in);
    }
}

#[tokio::test]
async fn the_index_of_a_list_is_a_way_in_too() {
    let source = source(small(20).entries_per_list(6)).await;
    harvested_whole_and_only_once(&source, &source.resource_list());
}

#[tokio::test]
async fn large_bodies_and_small_ones_lie_side_by_side() {
    let source = source(small(24).size(Size::Range(0, 700_000))).await;
    let copy = harvested_whole_and_only_once(&source, &source.well_known());
    let largest = source.expected().max_by_key(|now| now.length).unwrap();
    assert!(largest.length > 256 * 1024, "the Source has a body that does not travel in a pack");
    assert_eq!(Some(copy.cat(&largest.uri)), source.body(&largest.uri));
}

#[tokio::test]
async fn without_any_declaration_a_second_run_asks_but_is_sent_nothing() {
    let source = source(small(30).digests([]).declare_length(false).declare_lastmod(false)).await;
    let copy = Destination::directory();
    copy.sync_with(&source.well_known(), &["--mode", "baseline"]).exits(0);
    copy.mirrors(&source);
    source.reset_requests();
    let second = copy.sync_with(&source.well_known(), &["--mode", "baseline"]).exits(0);
    assert_eq!(second.count("bytes"), 0, "{second}");
    let log = source.requests();
    let sent = log.resources - log.by_status.get(&304).copied().unwrap_or_default().min(log.resources);
    assert_eq!(sent, 0, "each request is answered 304: {log:?}");
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_list_without_change_list_is_compared_again_and_only_news_is_fetched() {
    let source = source(small(40).change_list(false)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    source.change(Changes { create: 3, update: 4, delete: 0 });
    source.refresh_resource_list();
    source.reset_requests();
    let second = copy.sync(&source.well_known()).exits(0);
    assert_eq!(second.json()["mode"], "baseline", "{second}");
    assert_eq!((second.count("stored"), source.requests().resources), (7, 7), "{second}");
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_plain_sitemap_is_a_source() {
    let site = Site::start().await;
    let uris = ["/a.txt", "/b.txt"].map(|path| site.serve(path, format!("this is {path}")));
    let map = site.serve("/sitemap.xml", urlset("", &uris.clone().map(|uri| resource(&uri, ""))));
    let copy = Destination::directory();
    let run = copy.sync(&map).exits(0);
    assert_eq!((run.count("listed"), run.count("stored")), (2, 2), "{run}");
    assert!(run.json()["quirks"]["no-capability"].as_u64() >= Some(1), "the tolerance is counted: {run}");
    for uri in uris {
        let path = uri.replace(&site.uri(""), "");
        assert_eq!(copy.cat(&uri), format!("this is {path}").into_bytes());
        assert_eq!(copy.file(&uri), Some(format!("this is {path}").into_bytes()));
    }
}

#[tokio::test]
async fn resources_whose_names_would_collide_are_all_kept_apart() {
    let site = Site::start().await;
    let paths = [
        "/a",
        "/a/",
        "/a/b",
        "/A",
        "/a?x=1&y=2",
        "/a/b?c",
        "/a%2Fb",
        "/a%2fb",
        "//a",
        "/caf%C3%A9.txt",
        "/a:b",
    ];
    let uris = paths.map(|path| site.serve(path, format!("the body of {path}")));
    let list = site.serve("/list.xml", urlset(LIST, &uris.clone().map(|uri| resource(&uri, ""))));
    let copy = Destination::directory();
    let run = copy.sync(&list).exits(0);
    assert_eq!(run.count("stored"), paths.len() as u64, "{run}");
    let mut view: Vec<Vec<u8>> = copy.view().into_values().collect();
    view.sort();
    let mut bodies = paths.map(|path| format!("the body of {path}").into_bytes());
    bodies.sort();
    assert_eq!(view, bodies, "one file for each");
    for (path, uri) in paths.iter().zip(&uris) {
        assert_eq!(copy.cat(uri), format!("the body of {path}").into_bytes(), "cat {uri}");
    }
}

#[tokio::test]
async fn bodies_are_kept_as_they_are_sent_whatever_their_content_encoding() {
    let site = Site::start().await;
    // The header only declares a coding. A client that decoded the body would fail; one that keeps the bytes as sent
    // does not.
    let body = "these very bytes";
    let uri = site.reply("/a.txt.gz", Reply::ok(body).header("content-encoding", "gzip"));
    let md = format!("length=\"{}\" encoding=\"gzip\"", body.len());
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&uri, &md)]));
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    assert_eq!((copy.cat(&uri), copy.file(&uri)), (body.into(), Some(body.into())));
}

#[tokio::test]
async fn resources_of_several_hosts_lie_under_the_name_of_each() {
    let one = Site::start().await;
    let two = Site::start().await;
    let uris = [one.serve("/a.txt", "first"), two.serve("/a.txt", "second")];
    let list = one.serve("/list.xml", urlset(LIST, &uris.clone().map(|uri| resource(&uri, ""))));
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    let names = uris.map(|uri| uri.replace("http://", "").replace(':', "+"));
    let view = copy.view();
    assert_eq!((&view[&names[0]], &view[&names[1]]), (&b"first".to_vec(), &b"second".to_vec()));
}

#[tokio::test]
async fn a_redirect_of_a_document_is_followed() {
    let site = Site::start().await;
    let list = urlset(LIST, &[resource(&site.serve("/a.txt", "one"), "")]);
    site.serve("/lists/real.xml", list);
    let moved = site.reply("/list.xml", Reply::status(302).header("location", "/lists/real.xml"));
    let copy = Destination::directory();
    copy.sync(&moved).exits(0);
    assert_eq!(copy.present().len(), 1);
}

#[tokio::test]
async fn every_set_of_a_source_is_harvested() {
    let site = Site::start().await;
    let mut sets = Vec::new();
    let mut uris = Vec::new();
    let shared = site.serve("/shared.txt", "in both sets");
    for name in ["a", "b"] {
        let own = site.serve(&format!("/{name}.txt"), format!("of set {name}"));
        let list = urlset(LIST, &[resource(&own, ""), resource(&shared, "")]);
        let list = site.serve(&format!("/{name}/list.xml"), list);
        let capabilities =
            urlset("capability=\"capabilitylist\"", &[resource(&list, "capability=\"resourcelist\"")]);
        sets.push(resource(
            &site.serve(&format!("/{name}/caps.xml"), capabilities),
            "capability=\"capabilitylist\"",
        ));
        uris.push(own);
    }
    site.serve("/.well-known/resourcesync", urlset("capability=\"description\"", &sets));
    let copy = Destination::directory();
    let run = copy.sync(&site.uri("/")).exits(0);
    uris.push(shared);
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), uris, "{run}");
    assert_eq!(site.requests_at("/shared.txt"), 1, "what is in both is asked for once");
}

#[tokio::test]
async fn include_and_exclude_choose_by_uri() {
    let source = source(small(100)).await;
    let copy = Destination::directory();
    let options = ["--include", "00000[0-4][0-9]", "--exclude", "[5-9]\\.bin$"];
    copy.sync_with(&source.well_known(), &options).exits(0);
    let wanted: Vec<String> = (0..50).filter(|n| n % 10 < 5).map(|n| source.resource_uri(n)).collect();
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), wanted);
    assert_eq!(copy.view().len(), wanted.len());
    assert_eq!(source.requests().resources, wanted.len() as u64, "what is not wanted is not asked for");

    source.reset_requests();
    copy.sync(&source.well_known()).exits(0);
    assert_eq!(source.requests().resources, 100 - wanted.len() as u64, "the rest, once it is wanted");
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_view_can_be_left_out_and_made_later_without_asking_the_source() {
    let source = source(small(60)).await;
    let copy = Destination::directory();
    copy.sync_with(&source.well_known(), &["--view", "none"]).exits(0);
    assert!(copy.view().is_empty(), "{:?}", copy.view().keys());
    assert_eq!(copy.present().len(), 60);
    let some = source.resource_uri(7);
    assert_eq!(Some(copy.cat(&some)), source.body(&some));
    source.reset_requests();
    copy.sync_with(&source.well_known(), &["--view", "files"]).exits(0);
    assert_eq!(source.requests().resources, 0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn the_default_destination_is_a_directory_named_after_the_host() {
    let source = source(small(5)).await;
    let folder = tempfile::TempDir::new().unwrap();
    Run::of(thresher().args(["sync", &source.url()]).current_dir(folder.path())).exits(0);
    let copy = Destination::at(&folder.path().join("127.0.0.1"));
    copy.mirrors(&source);
    let ls = Run::of(thresher().args(["ls", "--json"]).current_dir(&copy.into)).exits(0);
    assert_eq!(ls.json_lines().len(), 5, "where one stands is the default: {ls}");
}

#[tokio::test]
async fn an_origin_is_asked_by_no_more_requests_at_a_time_than_allowed() {
    let most = async |options: &[&str]| {
        let source = source(small(60)).await;
        let (url, copy) = (source.url(), Destination::directory());
        // None is answered before two are open.
        source.allow(0);
        let words = [&[url.as_str()], options].concat();
        let mut sync = Process::start(&mut copy.command("sync", &words));
        assert!(sync.until(|| source.requests().max_in_flight >= 2).await, "it ended too early");
        source.allow_all();
        assert_eq!(sync.end(), Some(0));
        source.requests().max_in_flight
    };
    let by_default = most(&[]).await;
    assert!((2..=4).contains(&by_default), "4 by default, and they are used: {by_default}");
    assert_eq!(most(&["--concurrency", "2"]).await, 2);
}

#[tokio::test]
async fn ls_lists_what_begins_with_a_prefix_in_order_and_in_words() {
    let source = source(small(30)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    let prefix = source.resource_uri(10).replace("0.bin", "");
    let lines = copy.run("ls", &["--json", &prefix]).exits(0).json_lines();
    let uris: Vec<&str> = lines.iter().filter_map(|line| line["uri"].as_str()).collect();
    assert_eq!(uris, (10..20).map(|n| source.resource_uri(n)).collect::<Vec<_>>());
    for name in ["state", "length", "sha256", "change_time", "stored_at", "location"] {
        assert!(lines.iter().all(|line| line.get(name).is_some()), "every line has {name}: {}", lines[0]);
    }
    let text = copy.run("ls", &[]).exits(0).stdout;
    assert!(text.lines().count() == 30 && text.contains(&source.resource_uri(29)), "{text}");
}

#[tokio::test]
async fn discover_shows_what_a_source_offers_and_harvests_nothing() {
    let source = source(small(30)).await;
    let shown = Run::of(thresher().args(["discover", &source.url()])).exits(0);
    for uri in [source.capability_list(), source.resource_list(), source.change_list()] {
        assert!(shown.stdout.contains(&uri), "{uri} is shown: {shown}");
    }
    let json = Run::of(thresher().args(["discover", &source.url(), "--json"])).exits(0).json();
    assert!(json.to_string().contains(&source.resource_list()), "{json}");
    assert_eq!(source.requests().resources, 0);
    assert_eq!(requests_at(&source, &source.resource_list()), 0, "a list is not read to be shown");
}
