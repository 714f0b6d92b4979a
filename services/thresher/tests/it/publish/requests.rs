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

pub(super) async fn get(url: &str, headers: &[(&str, &str)]) -> Response {
    ask(Method::GET, url, headers).await
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    let value = response.headers().get(name).unwrap_or_else(|| panic!("no {name}: {response:?}"));
    value.to_str().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
pub(super) async fn body(response: Response) -> Vec<u8> {
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
}

#[tokio::test]
async fn a_range_is_of_the_version_that_the_reader_has_or_all_is_sent() {
    let source = source(SourceSpec::default().resources(3)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::start(&copy);
    let uri: ResourceUri = source.resource_uri(1).parse().unwrap();
    let urls =
        [PublishedPath::of(&uri).as_str(), "resourcelist.xml"].map(|path| format!("{}{path}", served.base));
    for url in urls {
        let whole = get(&url, &[]).await;
        let etag = header(&whole, "etag").to_owned();
        let bytes = body(whole).await;
        assert_eq!(etag, format!("\"{}\"", fixity::Sha256::of(&bytes)), "{url}");
        let part = get(&url, &[("range", "bytes=2-5"), ("if-range", &etag)]).await;
        assert_eq!((part.status(), header(&part, "etag")), (StatusCode::PARTIAL_CONTENT, &etag[..]), "{url}");
        assert_eq!(body(part).await, bytes[2..6]);
        let other = get(&url, &[("range", "bytes=2-5"), ("if-range", "\"another\"")]).await;
        assert_eq!(other.status(), StatusCode::OK, "{url}");
        assert_eq!(body(other).await, bytes);
        let behind = [("range", "bytes=99999999-"), ("if-range", &etag[..])];
        let behind = get(&url, &behind).await;
        assert_eq!(behind.status(), StatusCode::RANGE_NOT_SATISFIABLE, "{url}");
        assert_eq!(header(&behind, "content-range"), format!("bytes */{}", bytes.len()));
        let behind = get(&url, &[("range", "bytes=99999999-"), ("if-range", "\"another\"")]).await;
        assert_eq!((behind.status(), body(behind).await), (StatusCode::OK, bytes), "{url}");
    }
}

/// The newest change of a resource, in the Change Lists of a publication.
async fn last_change(served: &Served, url: &str) -> Option<String> {
    let text = async |url: &str| String::from_utf8(body(get(url, &[]).await).await).unwrap();
    let index = text(&format!("{}changelist.xml", served.base)).await;
    let open = index.split("<loc>").last()?.split("</loc>").next()?.to_owned();
    let list = text(&open).await;
    let entry = list.split("<url>").filter(|entry| entry.contains(&format!("<loc>{url}</loc>"))).last()?;
    Some(entry.split(" change=\"").nth(1)?.split('"').next()?.to_owned())
}

#[tokio::test]
async fn who_has_an_old_list_finds_what_was_deleted_and_is_told_what_was_updated() {
    let source = source(SourceSpec::default().resources(5)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::start(&copy);
    let [deleted, updated] = [2, 3].map(|number| source.resource_uri(number));
    let [deleted_url, updated_url] = [&deleted, &updated].map(|uri| {
        let uri: ResourceUri = uri.parse().unwrap();
        format!("{}{}", served.base, PublishedPath::of(&uri).as_str())
    });
    let before = copy.cat(&deleted);
    let listed = header(&get(&updated_url, &[]).await, "etag").to_owned();
    source.change_one(2, ChangeKind::Deleted);
    source.change_one(3, ChangeKind::Updated);
    copy.sync(&source.well_known()).exits(0);
    for (url, change) in [(&deleted_url, "deleted"), (&updated_url, "updated")] {
        testkit::waiting::found("the change is told", async || {
            (last_change(&served, url).await.as_deref() == Some(change)).then_some(())
        })
        .await;
    }

    let kept = get(&deleted_url, &[]).await;
    assert_eq!(kept.status(), StatusCode::OK);
    assert_eq!(body(kept).await, before);
    let found = get(&updated_url, &[]).await;
    assert_ne!(header(&found, "etag"), listed);
    assert_eq!(body(found).await, copy.cat(&updated));
    let of_list = get(&updated_url, &[("if-match", &listed)]).await;
    assert_eq!(of_list.status(), StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn acc_7_readers_without_a_token_get_nothing_and_those_with_one_everything() {
    let source = source(SourceSpec::default().resources(5)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.yaml");
    std::fs::write(&tokens, "- {name: reader, token: correct-horse-battery}\n").unwrap();
    let served = Served::with_tokens(&copy, &tokens);
    let uri: ResourceUri = source.resource_uri(2).parse().unwrap();
    let resource = PublishedPath::of(&uri).as_str().to_owned();
    for path in [".well-known/resourcesync", "capabilitylist.xml", "robots.txt", "", &resource, "nothing"] {
        let url = format!("{}{path}", served.base);
        for headers in [&[][..], &[("authorization", "Bearer wrong-horse-battery")]] {
            let refused = get(&url, headers).await;
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
            assert!(header(&refused, "www-authenticate").starts_with("Bearer"));
        }
    }
    let with = [("authorization", "Bearer correct-horse-battery")];
    let found = get(&format!("{}{resource}", served.base), &with).await;
    assert_eq!((found.status(), header(&found, "cache-control")), (StatusCode::OK, "private, no-cache"));

    let secret = folder.path().join("secret");
    std::fs::write(&secret, "correct-horse-battery").unwrap();
    let credentials = folder.path().join("credentials.yaml");
    let origin = served.base.trim_end_matches('/');
    let line = format!("- {{origin: \"{origin}\", bearer: {{file: {}}}}}\n", secret.display());
    std::fs::write(&credentials, line).unwrap();
    let reader = Destination::directory();
    let options = ["--credentials", credentials.to_str().unwrap()];
    reader.sync_with(&served.well_known(), &options).exits(0);
    assert_eq!(reader.present().len(), 5);

    // A reader with a token that is taken out is refused.
    std::fs::write(&tokens, "- {name: other, token: another-horse-battery}\n").unwrap();
    testkit::waiting::found("the token is revoked", async || {
        let status = get(&format!("{}{resource}", served.base), &with).await.status();
        (status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
}
