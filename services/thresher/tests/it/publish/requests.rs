//! What the publisher answers to single requests.

use model::ResourceUri;
use publish::PublishedPath;
use reqwest::{Client, Method, Response, StatusCode};
use simulated_source::{ChangeKind, SourceSpec};

use super::Served;
use crate::common::{Destination, source};

async fn ask(method: Method, url: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Client::builder().no_proxy().build().unwrap().request(method, url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.expect("an answer")
}

async fn get(url: &str, headers: &[(&str, &str)]) -> Response {
    ask(Method::GET, url, headers).await
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    let value = response.headers().get(name).unwrap_or_else(|| panic!("no {name}: {response:?}"));
    value.to_str().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
async fn body(response: Response) -> Vec<u8> {
    response.bytes().await.unwrap().to_vec()
}

#[tokio::test]
async fn resources_and_documents_are_answered_as_http_asks() {
    let source = source(SourceSpec::default().resources(5)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::start(&copy);
    let uri: ResourceUri = source.resource_uri(2).parse().unwrap();
    let url = format!("{}{}", served.base, PublishedPath::of(&uri).as_str());
    let bytes = copy.cat(uri.as_str());
    let (_, sha256) = copy.present()[uri.as_str()].clone();

    let whole = get(&url, &[]).await;
    assert_eq!(whole.status(), StatusCode::OK);
    assert_eq!(header(&whole, "etag"), format!("\"{sha256}\""));
    assert_eq!(header(&whole, "content-length"), bytes.len().to_string());
    assert_eq!(header(&whole, "accept-ranges"), "bytes");
    assert!(header(&whole, "content-digest").starts_with("sha-256=:"));
    assert_eq!(header(&whole, "content-digest"), header(&whole, "repr-digest"));
    assert_eq!(header(&whole, "link"), format!("<{}capabilitylist.xml>; rel=\"resourcesync\"", served.base));
    let modified = header(&whole, "last-modified").to_owned();
    let etag = header(&whole, "etag").to_owned();
    assert_eq!(body(whole).await, bytes);

    let head = ask(Method::HEAD, &url, &[]).await;
    assert_eq!(header(&head, "etag"), etag);
    assert_eq!(header(&head, "content-length"), bytes.len().to_string());
    assert!(body(head).await.is_empty());
    for (name, value) in [("if-none-match", &etag), ("if-modified-since", &modified)] {
        assert_eq!(get(&url, &[(name, value)]).await.status(), StatusCode::NOT_MODIFIED, "{name}");
    }
    let part = get(&url, &[("range", "bytes=3-9")]).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(header(&part, "content-range"), format!("bytes 3-9/{}", bytes.len()));
    assert!(part.headers().get("content-digest").is_none(), "it would be that of the part");
    assert_eq!(body(part).await, bytes[3..10]);
    let behind = get(&url, &[("range", "bytes=99999999-")]).await;
    assert_eq!(behind.status(), StatusCode::RANGE_NOT_SATISFIABLE);

    let list = get(&format!("{}resourcelist.xml", served.base), &[]).await;
    assert_eq!((header(&list, "content-type"), list.status()), ("application/xml", StatusCode::OK));
    let known = header(&list, "etag").to_owned();
    let again = get(&format!("{}resourcelist.xml", served.base), &[("if-none-match", &known)]).await;
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let page = get(&served.base, &[]).await;
    assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");

    for nothing in
        ["resources/http/1/e.org", "nothing", ".thresher/publication.json", "changelist/..%2f..%2fx.xml"]
    {
        let status = get(&format!("{}{nothing}", served.base), &[]).await.status();
        assert_eq!(status, StatusCode::NOT_FOUND, "{nothing}");
    }
    let posted = ask(Method::POST, &url, &[]).await;
    assert_eq!((posted.status(), header(&posted, "allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD"));

    source.change_one(2, ChangeKind::Deleted);
    copy.sync(&source.well_known()).exits(0);
    testkit::waiting::found("the resource is gone", async || {
        (get(&url, &[]).await.status() == StatusCode::GONE).then_some(())
    })
    .await;
}
