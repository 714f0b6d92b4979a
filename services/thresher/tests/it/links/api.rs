//! Links by the gateway: in the API, its client and the console.

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::waiting::found;

use super::{declares, linked, ln, time};
use crate::common::api::{Api, READ, fleet};
use crate::common::console::Visitor;
use crate::common::{Site, urlset};

const ONE: &str = "http://c.test/1?a=b&c";
const TWO: &str = "http://c.test/2";

fn query(values: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(values).finish()
}

/// The URIs of all pages of a list of resources, two items a page.
async fn uris(api: &Api, path: &str, wanted: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = [("limit", "2"), ("cursor", cursor.as_deref().unwrap_or_default())];
        let page = if cursor.is_some() { &page[..] } else { &page[..1] };
        let page = api.get(&format!("{path}?{}", query(&[wanted, page].concat()))).await;
        let page = page.is(StatusCode::OK).json();
        let items = page["items"].as_array().expect("items");
        found.extend(items.iter().map(|item| item["uri"].as_str().expect("a URI").to_owned()));
        let Some(next) = page["next"].as_str() else { break found };
        cursor = Some(next.to_owned());
    }
}

#[tokio::test]
async fn lnk_4_the_gateway_selects_by_links_and_the_console_shows_them() {
    let site = Site::start().await;
    let paths = ["/a", "/b", "/c", "/d", "/e"];
    let all = paths.map(|path| site.serve(path, path));
    let [a, b, c, d, e] = &all;
    let amp = |uri: &str| uri.replace('&', "&amp;");
    let collections =
        |uris: &[&str]| -> Vec<String> { uris.iter().map(|uri| ln("collection", &amp(uri), "")).collect() };
    let entry = |uri: &str, path: &str, links: &[String]| {
        linked(uri, &declares(path), &links.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let described = ln("describedby", e, "type=\"text/plain\"");
    let entries = [
        entry(a, "/a", &[collections(&[ONE]), vec![described]].concat()),
        entry(b, "/b", &collections(&[TWO])),
        entry(c, "/c", &collections(&[ONE, TWO])),
        entry(d, "/d", &[ln("via", TWO, "")]),
        entry(e, "/e", &[]),
    ];
    let md = format!("capability=\"resourcelist\" at=\"{}\"", time(1));
    let list = site.serve("/list.xml", urlset(&md, &entries));
    let (_fleet, _all, api) = fleet().await;
    api.ask(&["source", "add", &list, "--name", "linked", "--no-run"]).await.exits(0);
    api.ask(&["run", "submit", &list, "--watch"]).await.exits(0);
    let api = api.with(Some(READ));
    let resources = "/v1/sources/linked/resources";
    found("the gateway sees the whole run", async || (uris(&api, resources, &[]).await == all).then_some(()))
        .await;

    // At the gateway.
    for (wanted, expected) in [
        (vec![("link.rel", "collection")], vec![a, b, c]),
        (vec![("link.rel", "Collection"), ("link.href", ONE)], vec![a, c]),
        (vec![("link.href", TWO)], vec![b, c, d]),
        (vec![("link.href", TWO), ("prefix", d.as_str())], vec![d]),
        (vec![("link.rel", "license")], vec![]),
    ] {
        let found = uris(&api, resources, &wanted).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{wanted:?}");
    }
    for refused in ["link.rel=", "link.href=%20", "link.type=a"] {
        api.get(&format!("{resources}?{refused}")).await.is(StatusCode::BAD_REQUEST);
    }
    let page = api.get(&format!("{resources}?limit=1")).await.is(StatusCode::OK).json();
    let expected = json!([
        {"rel": "collection", "href": ONE, "document": list},
        {"rel": "describedby", "href": e, "type": "text/plain", "document": list},
    ]);
    assert_eq!(page["items"][0]["links"], expected);

    // What links lead to, and why nothing is stored of some of it.
    let history = api.get(&format!("{resources}/history?{}", query(&[("uri", a)]))).await.is(StatusCode::OK);
    let ends = &history.json()["link_ends"];
    assert_eq!((&ends[0]["rel"], &ends[0]["state"]), (&json!("collection"), &Value::Null), "{ends}");
    let not_followed = ends[0]["not_followed"].as_str().unwrap_or_default();
    assert!(not_followed.contains("neither --follow-links"), "{ends}");
    assert_eq!(ends[1], json!({"rel": "describedby", "href": e, "state": "present"}));

    // By the client.
    let said = api.ask(&["explain", a]).await.exits(0).stdout;
    assert!(said.contains("neither --follow-links") && said.contains(e.as_str()), "{said}");
    let words = format!("collection={ONE}");
    for words in [["ls", "--link", &words], ["ls", "--collection", ONE]] {
        let said = api.ask(&words).await.exits(0).stdout;
        assert_eq!(said.lines().count(), 2, "{words:?}: {said}");
    }

    // A work is a resource with its metadata.
    let works = api.get("/v1/sources/linked/works").await.is(StatusCode::OK).json();
    let heads: Vec<&Value> = works["items"].as_array().unwrap().iter().map(|work| &work["uri"]).collect();
    assert_eq!(heads, [a, b, c, d]);
    assert_eq!(works["items"][0]["metadata"][0]["uri"], *e, "{works}");
    assert_eq!(works["items"][0]["collections"], json!([ONE]), "{works}");

    // On the pages.
    let visitor = Visitor::of(&api).signed_in(READ).await;
    let source = "/console/sources/linked";
    let history = visitor.page(&format!("{source}/resources/history?{}", query(&[("uri", a)]))).await;
    for text in [
        "neither --follow-links",
        ">Links</h2>",
        "http://c.test/1?a=b&amp;c",
        e.as_str(),
        "text/plain",
        &format!("of {list}"),
    ] {
        assert!(history.contains(text), "{text}: {history}");
    }
    let report = visitor.page(&format!("{source}/report")).await;
    for text in [">Collections</h2>", "http://c.test/1?a=b&amp;c", ">describedby</dt>"] {
        assert!(report.contains(text), "{text}: {report}");
    }
    let members = visitor.page(&format!("{source}/resources?{}", query(&[("link", &words)]))).await;
    assert!(members.contains(a.as_str()) && !members.contains(b.as_str()), "{members}");
    let refused = visitor.get(&format!("{source}/resources?link=a%20b")).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
}
