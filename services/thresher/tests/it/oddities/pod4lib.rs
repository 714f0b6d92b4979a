//! POD, the pod4lib aggregator.

use super::{CHANGES, Case, LIST, counted, index_of, not_modified, nothing_lost};
use crate::common::{Site, resource, urlset};
use resourcesync::Options;
use secrets::Secret;
use testkit::scripted::Reply;
use web::{Client, Credential, GetRequest, WebConfig};

#[tokio::test]
async fn oddity_14_metadata_before_loc() {
    let case = Case::new().await;
    let [uri] = case.bodies(["/1.mrc"]);
    let entry = format!("<url><rs:md length=\"6\" type=\"application/marc\"/><loc>{uri}</loc></url>");
    let url = case.list(LIST, &[entry]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("metadata-before-loc", 1)]);
    case.holds_only(std::slice::from_ref(&uri));
    let story = case.copy.explain(&uri);
    assert!(story.contains("declared length 6"), "what stands before it counts:\n{story}");
}

#[tokio::test]
async fn oddity_15_deltas_and_files_of_deletions_in_a_resource_list_are_resources_like_others() {
    let case = Case::new().await;
    let [record] = case.bodies(["/record.xml"]);
    let [full, delta] = case.bodies(["/full.xml.gz", "/delta-1.xml.gz"]);
    let deletes = case.site.serve("/deletes-1.del.txt", &record);
    let uris = [&record, &full, &delta, &deletes];
    let url = case.list(LIST, &uris.map(|uri| resource(uri, "")));
    for _ in 0..2 {
        let run = case.sync(&url).exits(0);
        nothing_lost(&run);
        counted(&run, &[("entry-without-metadata", 4)]);
        case.holds(&deletes, &record);
        case.holds(&record, "/record.xml");
        assert_eq!(case.copy.present().len(), 4);
    }
}

#[tokio::test]
async fn oddity_16_entries_that_say_nothing_but_a_uri() {
    let case = Case::new().await;
    let [one, two] = case.bodies(["/1.xml", "/2.xml"]);
    let url = case.list(LIST, &[resource(&one, ""), resource(&two, "")]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("entry-without-metadata", 2)]);
    assert!(case.copy.explain(&one).contains("no digest or length was declared"));

    // No date shows whether anything has changed, so it is requested.
    case.site.serve("/1.xml", "new");
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("unchanged")), (1, 1), "{run}");
    case.holds(&one, "new");
    case.holds(&two, "/2.xml");
}

#[tokio::test]
async fn oddity_17_a_urlset_that_lists_lists_is_followed_like_an_index() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2", "/3"]);
    let [one, two, three] = &uris;
    let part = |path, entries: &[String]| {
        let uri = case.site.serve(path, urlset(LIST, entries));
        resource(&uri, "capability=\"resourcelist\"")
    };
    let parts = [
        part("/part1.xml", &[resource(one, "")]),
        part("/part2.xml", &[resource(two, ""), resource(three, "")]),
    ];
    case.list(LIST, &parts);
    let url = case.capabilities(&[("/list.xml", "resourcelist")]);
    let run = case.sync(&url).exits(0);
    assert_eq!(run.json()["quirks"]["urlset-as-index"], 2, "{run}");
    assert_eq!((run.count("listed"), run.count("stored")), (3, 3), "the parts are no resources: {run}");
    case.holds_only(&uris);

    // Such a list is doubtful: resources missing from it are not absent.
    for day in ["02", "03"] {
        case.list(&LIST.replace("01-01", &format!("01-{day}")), &parts[..1]);
        let run = case.sync_with(&url, &["--absent", "delete"]).exits(0);
        nothing_lost(&run);
        case.holds_only(&uris);
    }

    // Its parts may change while it does not.
    let versioned = Reply::ok(urlset(LIST, &parts)).header("etag", "\"1\"");
    case.site.reply("/list.xml", versioned);
    case.sync(&url).exits(0);
    case.site.reply("/list.xml", not_modified());
    case.site.serve("/1", "new");
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("listed"), run.count("stored")), (3, 1), "{run}");
    case.holds(one, "new");

    // The same with a Change List, where the entries of an index have an interval and no change.
    let case = Case::new().await;
    let [uri] = case.bodies(["/1"]);
    case.site
        .serve("/day.xml", urlset(CHANGES, &[resource(&uri, "change=\"created\" datetime=\"2026-01-02\"")]));
    let day = "from=\"2026-01-01T00:00:00Z\" until=\"2026-01-03T00:00:00Z\"";
    let url = case.changes(CHANGES, &[resource(&case.site.uri("/day.xml"), day)]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("urlset-as-index", 1)]);
    case.holds_only(&[uri]);
    let index = case.changes(CHANGES, &[]);
    case.site.serve("/changes.xml", index_of(CHANGES, &[resource(&case.site.uri("/day.xml"), day)]));
    nothing_lost(&case.sync(&index).exits(0));
}

#[tokio::test]
async fn oddity_18_no_answer_has_a_length_and_bodies_come_from_signed_addresses_elsewhere() {
    let case = Case::new().await;
    let storage = Site::start().await;
    let signed = |n: u32| {
        let body = Reply::ok("the body").without_length().header("etag", "\"v1\"");
        let target = storage.reply(&format!("/bucket/key?signature={n}"), body);
        case.site.reply("/1.mrc", Reply::status(302).header("location", target))
    };
    let uri = signed(1);
    let list = Reply::ok(urlset(LIST, &[resource(&uri, "")])).without_length();
    let url = case.site.reply("/list.xml", list);
    let run = case.sync(&url).exits(0);
    assert_eq!(run.count("stored"), 1, "{run}");
    signed(2);
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("unchanged")), (0, 1), "{run}");
    case.holds(&uri, "the body");
    assert_eq!(case.copy.ls().len(), 1, "it is known by the address it is listed under");

    // The token is for the Source, not for its storage.
    let origin = case.site.uri("").parse().expect("an origin");
    let bearer = Credential::bearer(origin, &Secret::new("token")).expect("a token");
    let config = WebConfig { credentials: vec![bearer], ..WebConfig::default() };
    let client = Client::new(config).expect("a client");
    let before = (case.site.requests_at("/1.mrc"), storage.requests_at("/bucket/key?signature=2"));
    let response = client.get(GetRequest::new(uri.parse().expect("a URL"))).await.expect("an answer");
    assert_eq!(response.content_length(), None);
    let sent = case.site.headers_at("/1.mrc", "authorization").split_off(before.0);
    assert_eq!(sent, [Some("Bearer token".to_owned())]);
    let sent = storage.headers_at("/bucket/key?signature=2", "authorization").split_off(before.1);
    assert_eq!(sent, [None]);
}

#[tokio::test]
async fn oddity_19_a_token_that_is_not_accepted_is_answered_with_500() {
    let case = Case::new().await;
    let [uri] = case.bodies(["/1"]);
    let url = case.list(LIST, &[resource(&uri, "")]);
    case.sync(&url).exits(0);
    case.site.reply("/list.xml", Reply::status(500));
    case.site.reply("/.well-known/resourcesync", Reply::status(500));

    let config = WebConfig { backoff_first: std::time::Duration::from_millis(1), ..WebConfig::default() };
    let client = Client::new(config).expect("a client");
    let asked = case.site.requests_at("/list.xml");
    let entry = url.parse().expect("a URL");
    let error = discovery::discover(&client, &entry, &Options::default()).await.expect_err("500").to_string();
    assert!(error.contains("500") && error.contains("credential"), "{error}");
    assert_eq!(
        case.site.requests_at("/list.xml") - asked,
        4,
        "it might pass, so it is tried again, but not for ever"
    );

    let view = case.copy.view();
    case.sync(&url).exits(3).complains(&[&url, "500"], &["check the credential"]);
    case.holds_only(&[uri]);
    assert_eq!(case.copy.view(), view);
}
