use model::ResourceUri;
use testkit::scripted::{Reply, ScriptedServer};
use web::{AddressPolicy, WebConfig};

use super::*;

/// A server with these bodies, and a client that may reach it.
async fn server(bodies: &[(&str, String)]) -> (ScriptedServer, Client, Url) {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/robots.txt", Reply::status(404));
    for (path, body) in bodies {
        server.always(path, Reply::ok(body.clone()).header("content-type", LINK_FORMAT));
    }
    let base: Url = server.url().parse().unwrap();
    let addresses = AddressPolicy::public_unless(&base);
    let client = Client::new(WebConfig { addresses, attempts: 1, ..WebConfig::default() }).unwrap();
    (server, client, base)
}

const LINK_FORMAT: &str = timemap::LINK_FORMAT;

fn original(base: &Url) -> Url {
    let uri: ResourceUri = base.join("/v").unwrap().as_str().parse().unwrap();
    uri.to_url()
}

fn version(url: &str, day: u8) -> String {
    let time: Timestamp = format!("2026-01-{day:02}T00:00:00Z").parse().unwrap();
    format!("<{url}>; rel=\"memento\"; datetime=\"{}\"", links::http_date(time).unwrap())
}

async fn read_at(client: &Client, base: &Url) -> Pages {
    read(client, base.join("/tm").unwrap(), &original(base), &Limits::BODY).await
}

fn paths(pages: &Pages) -> Vec<String> {
    let mut paths: Vec<String> = pages.versions.iter().map(|named| named.url.path().to_owned()).collect();
    paths.sort();
    paths
}

#[tokio::test]
async fn all_pages_are_read_once_and_commas_belong_to_urls() {
    let first = [
        "</v>; rel=\"original\"".to_owned(),
        "</tm>; rel=\"self\"".to_owned(),
        "</tm/2>; rel=\"timemap\"; until=\"Sat, 03 Jan 2026 00:00:00 GMT\"".to_owned(),
        version("/a,b;c/4", 4),
    ];
    // It leads back to the first one.
    let second = ["</tm>; rel=\"timemap\"".to_owned(), version("/2", 2), version("/3", 3)];
    let (server, client, base) = server(&[("/tm", first.join(",\n")), ("/tm/2", second.join(", "))]).await;
    let found = read_at(&client, &base).await;
    assert_eq!(paths(&found), ["/2", "/3", "/a,b;c/4"]);
    assert_eq!((found.pages, found.unread.len()), (2, 0));
    assert_eq!(found.faults.count(Fault::NoOriginal), 1, "of the second page");
    assert_eq!(server.requests_at("/tm").len(), 1);
}

#[tokio::test]
async fn a_timemap_without_an_end_is_given_up_and_what_was_read_counts() {
    let page = |n: usize| format!("</tm/{}>; rel=\"timemap\",\n{}", n + 1, version(&format!("/{n}"), 1));
    let bodies: Vec<(String, String)> = (0..MOST_PAGES + 5)
        .map(|n| (if n == 0 { "/tm".to_owned() } else { format!("/tm/{n}") }, page(n)))
        .collect();
    let bodies: Vec<(&str, String)> =
        bodies.iter().map(|(path, body)| (path.as_str(), body.clone())).collect();
    let (_server, client, base) = server(&bodies).await;
    let found = read_at(&client, &base).await;
    assert_eq!((found.pages as usize, found.versions.len()), (MOST_PAGES, MOST_PAGES));
    let reasons: Vec<_> = found.unread.iter().map(|unread| unread.reason).collect();
    assert_eq!(reasons, ["timemap-too-long"]);
}

#[tokio::test]
async fn what_is_no_timemap_of_the_resource_is_told_and_not_used() {
    let other = format!("<http://other.test/v>; rel=\"original\",\n{}", version("/1", 1));
    let (server, client, base) = server(&[("/tm", other)]).await;
    let found = read_at(&client, &base).await;
    assert_eq!((found.versions.len(), found.unread[0].reason), (0, "other-original"));
    let page = "<!DOCTYPE html>\n<html><head><title>x; y</title></head></html>";
    for (reply, reason) in [
        (Reply::ok(page).header("content-type", "text/html"), "no-timemap"),
        (Reply::ok("{\"a\": 1").header("content-type", "application/json"), "no-timemap"),
        (Reply::ok(""), "no-timemap"),
        (Reply::status(404), "http-client-error"),
    ] {
        server.always("/tm", reply);
        let found = read_at(&client, &base).await;
        assert_eq!((found.versions.len(), found.unread[0].reason), (0, reason));
    }
}

#[tokio::test]
async fn a_timemap_is_recognized_without_its_media_type_and_without_the_scheme_of_its_resource() {
    let (server, client, base) = server(&[]).await;
    let original = original(&base).to_string().replace("http://", "https://");
    let body = format!("\n<{original}/>;rel=original,\n{}", version("ftp://h/x", 1) + "," + &version("1", 2));
    server.always("/tm", Reply::ok(body));
    let found = read_at(&client, &base).await;
    assert_eq!((paths(&found), found.unread.len()), (vec!["/1".to_owned()], 0));
    assert_eq!(found.faults.count(Fault::NoTarget), 1, "no scheme that is fetched");
}
