//! Lists that are indexes, and indexes that are lists: the attributes of an entry decide what it points to.

use crate::common::{Destination, Site, resource, urlset};
use testkit::scripted::Reply;

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
const CHANGES: &str = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";

/// A `urlset` of two Resource Lists of one resource each.
async fn listed_lists() -> (Site, String, [String; 2]) {
    let site = Site::start().await;
    let [one, two] = ["/1.txt", "/2.txt"].map(|path| site.serve(path, format!("of {path}")));
    let lists = [("/a.xml", &one), ("/b.xml", &two)].map(|(path, uri)| {
        let list = urlset(LIST, &[resource(uri, "")]);
        resource(&site.reply(path, Reply::ok(list).header("etag", "\"1\"")), "capability=\"resourcelist\"")
    });
    let way_in = site.reply("/lists.xml", Reply::ok(urlset(LIST, &lists)).header("etag", "\"1\""));
    (site, way_in, [one, two])
}

#[tokio::test]
async fn lists_in_a_urlset_are_followed_as_those_of_an_index() {
    let (_site, way_in, resources) = listed_lists().await;
    let copy = Destination::directory();
    let run = copy.sync(&way_in).exits(0);
    assert_eq!(run.json()["quirks"]["urlset-as-index"], 2, "{run}");
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), resources, "the lists are no resources");
}

#[tokio::test]
async fn nothing_is_deleted_for_its_absence_from_lists_in_a_urlset() {
    let (site, way_in, resources) = listed_lists().await;
    let copy = Destination::directory();
    copy.sync(&way_in).exits(0);
    for day in 2..5 {
        let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
        site.serve("/a.xml", urlset(&md, &[]));
        let list = resource(&site.uri("/a.xml"), "capability=\"resourcelist\"");
        site.serve("/lists.xml", urlset(&md, &[list]));
        let run = copy.sync_with(&way_in, &["--absent", "delete", "--max-deletes", "100%"]).exits(0);
        assert_eq!(run.count("deleted"), 0, "{run}");
    }
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), resources);
}

#[tokio::test]
async fn change_lists_in_a_urlset_are_followed_and_join_on_to_each_other() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "first");
    let change = resource(&one, "change=\"created\" datetime=\"2026-01-02T00:00:00Z\"");
    site.serve("/open.xml", urlset(CHANGES, &[change]));
    let md = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    let way_in = urlset(CHANGES, &[resource(&site.uri("/open.xml"), md)]);
    let way_in = site.reply("/changes.xml", Reply::ok(way_in).header("etag", "\"1\""));
    let copy = Destination::directory();
    let run = copy.sync(&way_in).exits(0);
    assert_eq!(run.json()["quirks"]["urlset-as-index"], 1, "{run}");
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), std::slice::from_ref(&one));

    // The urlset has not changed, but its list has.
    site.reply("/changes.xml", Reply::status(304));
    let two = site.serve("/2.txt", "second");
    let change = resource(&two, "change=\"created\" datetime=\"2026-01-03T00:00:00Z\"");
    site.serve("/open.xml", urlset(CHANGES, &[change]));
    copy.sync(&way_in).exits(0);
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), [one, two]);
}

#[tokio::test]
async fn changes_in_a_sitemapindex_are_taken_for_what_they_are() {
    let site = Site::start().await;
    let [one, two] = ["/1.txt", "/2.txt"].map(|path| site.serve(path, format!("of {path}")));
    let entries = [&one, &two].map(|uri| {
        resource(uri, "change=\"created\" datetime=\"2026-01-02T00:00:00Z\"").replace("url>", "sitemap>")
    });
    let way_in = site.serve("/changes.xml", urlset(CHANGES, &entries).replace("urlset", "sitemapindex"));
    let copy = Destination::directory();
    let run = copy.sync(&way_in).exits(0);
    assert_eq!(run.json()["quirks"]["index-as-urlset"], 2, "{run}");
    assert_eq!(copy.present().into_keys().collect::<Vec<_>>(), [one, two]);
}

#[tokio::test]
async fn a_list_that_an_index_names_no_more_is_not_asked_for_again() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "first");
    let index = |part: &str| {
        let part = resource(&site.uri(part), "from=\"2026-01-01T00:00:00Z\"").replace("url>", "sitemap>");
        urlset(CHANGES, &[part]).replace("urlset", "sitemapindex")
    };
    let change = resource(&one, "change=\"created\" datetime=\"2026-01-02T00:00:00Z\"");
    site.serve("/a.xml", urlset(CHANGES, std::slice::from_ref(&change)));
    let way_in = site.reply("/changes.xml", Reply::ok(index("/a.xml")).header("etag", "\"a\""));
    let copy = Destination::directory();
    copy.sync(&way_in).exits(0);
    site.reply("/a.xml", Reply::status(404));
    site.serve("/b.xml", urlset(CHANGES, &[change]));
    site.reply("/changes.xml", Reply::ok(index("/b.xml")).header("etag", "\"b\""));
    copy.sync(&way_in).exits(0);
    site.reply("/changes.xml", Reply::status(304));
    copy.sync(&way_in).exits(0);
    assert_eq!(site.requests_at("/a.xml"), 1, "only while it was named");
}

#[tokio::test]
async fn packages_that_a_change_list_names_and_nobody_has_are_problems_as_long_as_it_names_them() {
    let site = Site::start().await;
    let package = |n: u32| {
        let md = format!(
            "type=\"application/x-xz\" from=\"2026-01-0{n}T00:00:00Z\" until=\"2026-01-0{}T00:00:00Z\"",
            n + 1
        );
        site.reply(&format!("/{n}.tar.xz"), Reply::status(404));
        resource(&site.uri(&format!("/{n}.tar.xz")), &md)
    };
    let way_in = site.serve("/changes.xml", urlset(CHANGES, &[package(1), package(2), package(3)]));
    let copy = Destination::directory();
    let run = copy.sync(&way_in).exits(1).says(&["/1.tar.xz", "/2.tar.xz", "/3.tar.xz"]);
    assert_eq!((run.count("listed"), run.count("failed"), run.count("stored")), (0, 0, 0), "{run}");
    assert_eq!(run.json()["quirks"]["package-in-change-list"], 3, "{run}");
    assert_eq!(site.requests_at("/1.tar.xz"), 1);
    assert!(copy.present().is_empty(), "a package is no resource");
    copy.sync(&way_in).exits(1).says(&["/1.tar.xz"]);
    assert_eq!(site.requests_at("/1.tar.xz"), 2, "each run tries again");
    site.serve("/changes.xml", urlset(CHANGES, &[]));
    copy.sync(&way_in).exits(0);
}
