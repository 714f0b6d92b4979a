//! The simulated Source as a client sees it.
#![expect(clippy::disallowed_methods, reason = "bodies that the test made itself are small")]

use std::io::Read as _;

use reqwest::{Client, StatusCode, header};
use sha2::{Digest, Sha256};
use simulated_source::{Algorithm, ChangeKind, Changes, Fault, SimulatedSource, Size, SourceSpec};
use testkit::waiting::until;

async fn text(uri: &str) -> String {
    reqwest::get(uri).await.unwrap().error_for_status().unwrap().text().await.unwrap()
}

/// The values between two marks, in order.
fn between<'a>(text: &'a str, before: &'a str, after: &'a str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

fn locs(document: &str) -> Vec<&str> {
    between(document, "<loc>", "</loc>")
}

fn spec(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(100, 300))
}

#[tokio::test]
async fn equal_plans_serve_equal_documents_and_bytes() {
    let mut seen = Vec::new();
    for seed in [1, 1, 2] {
        let source = SimulatedSource::start(spec(5).seed(seed)).await.unwrap();
        source.change(Changes { create: 1, update: 1, delete: 1 });
        let list = text(&source.resource_list()).await.replace(&source.url(), "");
        let changes = text(&source.change_list()).await.replace(&source.url(), "");
        let body = reqwest::get(source.resource_uri(5)).await.unwrap().bytes().await.unwrap();
        seen.push((list, changes, body));
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2]);
}

#[tokio::test]
async fn every_resource_is_found_from_the_front_door() {
    let source = SimulatedSource::start(spec(7)).await.unwrap();
    assert!(
        text(&source.url())
            .await
            .contains(&format!("rel=\"resourcesync\" href=\"{}\"", source.capability_list()))
    );
    assert!(text(&format!("{}/robots.txt", source.url())).await.contains(&source.resource_list()));
    let description = text(&source.well_known()).await;
    assert_eq!(locs(&description), [source.capability_list()]);
    let capabilities = text(&source.capability_list()).await;
    assert_eq!(locs(&capabilities), [source.resource_list(), source.change_list()]);
    let list = text(&source.resource_list()).await;
    for (loc, expected) in locs(&list).into_iter().zip(source.expected()) {
        let bytes = reqwest::get(loc).await.unwrap().bytes().await.unwrap();
        assert_eq!(loc, expected.uri);
        assert_eq!(bytes.len() as u64, expected.length);
        assert_eq!(data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes)), expected.sha256);
        assert!(
            list.contains(&format!("hash=\"sha-256:{}\" length=\"{}\"", expected.sha256, expected.length))
        );
        assert_eq!(source.body(loc).unwrap(), bytes);
    }
    let requests = source.requests();
    assert_eq!((requests.documents, requests.resources), (5, 7));
    assert_eq!(requests.by_status, [(200, 12)].into());
}

#[tokio::test]
async fn more_entries_than_a_list_holds_make_an_index_with_full_parts() {
    let source = SimulatedSource::start(spec(25).entries_per_list(10)).await.unwrap();
    let index = text(&source.resource_list()).await;
    assert!(index.contains("<sitemapindex") && index.contains("capability=\"resourcelist\" at=\""));
    let mut counts = Vec::new();
    for part in locs(&index) {
        let part = text(part).await;
        assert!(part.contains("rel=\"index\""));
        counts.push(locs(&part).len());
    }
    assert_eq!(counts, [10, 10, 5]);
    let beyond = reqwest::get(source.resource_list().replace(".xml", "-4.xml")).await.unwrap();
    assert_eq!(beyond.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_change_list_tells_changes_in_order_and_the_resource_list_waits() {
    let source = SimulatedSource::start(spec(10).entries_per_change_list(4)).await.unwrap();
    let before = text(&source.resource_list()).await;
    let changes = source.change(Changes { create: 2, update: 3, delete: 4 });
    assert_eq!(before, text(&source.resource_list()).await, "the list is a snapshot");
    let index = text(&source.change_list()).await;
    let parts = locs(&index);
    assert_eq!(parts.len(), 3);
    assert_eq!(between(&index, "until=\"", "\"").len(), 2, "all but the last are closed");
    let mut told = Vec::new();
    for part in parts {
        let part = text(part).await;
        let kinds = between(&part, "change=\"", "\"").into_iter().map(str::to_owned);
        let times = between(&part, "datetime=\"", "\"").into_iter().map(str::to_owned);
        let uris = locs(&part).into_iter().map(str::to_owned);
        told.extend(uris.zip(kinds).zip(times));
    }
    let made = changes.iter().map(|change| {
        ((source.resource_uri(change.index), change.kind.name().to_owned()), change.time.to_string())
    });
    assert_eq!(told, made.collect::<Vec<_>>());
    source.refresh_resource_list();
    let after = text(&source.resource_list()).await;
    assert_eq!(locs(&after), source.expected().map(|expected| expected.uri).collect::<Vec<_>>());
    assert_eq!(locs(&after).len(), 8);
    let deleted = changes.last().unwrap();
    assert_eq!(deleted.kind, ChangeKind::Deleted);
    let gone = reqwest::get(source.resource_uri(deleted.index)).await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_not_declared_is_not_in_the_list() {
    let bare = spec(2).digests([]).declare_length(false).declare_lastmod(false).change_list(false);
    let source = SimulatedSource::start(bare).await.unwrap();
    let list = text(&source.resource_list()).await;
    assert!(!list.contains("hash=") && !list.contains("length=") && !list.contains("lastmod"));
    assert!(!text(&source.capability_list()).await.contains("changelist"));
    assert_eq!(reqwest::get(source.change_list()).await.unwrap().status(), StatusCode::NOT_FOUND);
    let full = spec(1).digests([Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256]);
    let source = SimulatedSource::start(full).await.unwrap();
    let list = text(&source.resource_list()).await;
    let hashes: Vec<&str> = between(&list, "hash=\"", "\"")[0].split(' ').collect();
    assert!(
        hashes[0].starts_with("md5:") && hashes[1].starts_with("sha-1:") && hashes[2].starts_with("sha-256:")
    );
}

#[tokio::test]
async fn gzip_documents_unpack_to_the_plain_ones() {
    let plain = SimulatedSource::start(spec(300)).await.unwrap();
    let packed = SimulatedSource::start(spec(300).gzip(true)).await.unwrap();
    let bytes = reqwest::get(packed.resource_list()).await.unwrap().bytes().await.unwrap();
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(bytes.as_ref()).read_to_string(&mut unpacked).unwrap();
    assert_eq!(
        unpacked.replace(&packed.url(), ""),
        text(&plain.resource_list()).await.replace(&plain.url(), "")
    );
}

#[tokio::test]
async fn a_client_that_has_the_present_state_is_answered_304() {
    let source = SimulatedSource::start(spec(3)).await.unwrap();
    let client = Client::new();
    for uri in [source.resource_list(), source.change_list(), source.well_known(), source.resource_uri(1)] {
        let first = client.get(&uri).send().await.unwrap();
        let (tag, date) =
            (first.headers()[header::ETAG].clone(), first.headers()[header::LAST_MODIFIED].clone());
        for (name, value) in [(header::IF_NONE_MATCH, tag), (header::IF_MODIFIED_SINCE, date)] {
            let again = client.get(&uri).header(name, value).send().await.unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{uri}");
        }
    }
    let tag = client.get(source.resource_uri(1)).send().await.unwrap().headers()[header::ETAG].clone();
    source.change_one(1, ChangeKind::Updated);
    let changed = client.get(source.resource_uri(1)).header(header::IF_NONE_MATCH, tag).send().await.unwrap();
    assert_eq!(changed.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_range_is_served_unless_the_resource_changed_meanwhile() {
    let source = SimulatedSource::start(spec(1).size(Size::Fixed(1000))).await.unwrap();
    let whole = source.body(&source.resource_uri(0)).unwrap();
    let client = Client::new();
    let rest = |tag: String| {
        let request = client.get(source.resource_uri(0)).header(header::RANGE, "bytes=600-");
        request.header(header::IF_RANGE, tag).send()
    };
    let tag = client.head(source.resource_uri(0)).send().await.unwrap().headers()[header::ETAG].clone();
    let tag = tag.to_str().unwrap().to_owned();
    let part = rest(tag.clone()).await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers()[header::CONTENT_RANGE], "bytes 600-999/1000");
    assert_eq!(part.bytes().await.unwrap(), &whole[600..]);
    source.change_one(0, ChangeKind::Updated);
    let changed = rest(tag).await.unwrap();
    assert_eq!(changed.status(), StatusCode::OK);
    assert_eq!(changed.bytes().await.unwrap().len(), 1000);
}

#[tokio::test]
async fn the_most_requests_open_at_once_are_seen() {
    let source = SimulatedSource::start(spec(8)).await.unwrap();
    source.allow(0);
    let gets = (0..8).map(|index| reqwest::get(source.resource_uri(index)));
    let answer = async {
        until("all are open", || source.requests().resources == 8).await;
        source.allow_all();
    };
    tokio::join!(futures::future::join_all(gets), answer);
    assert_eq!(source.requests().max_in_flight, 8);
    source.reset_requests();
    assert_eq!(source.requests(), Default::default());
}

#[tokio::test]
async fn a_source_that_was_shut_down_answers_no_more() {
    let source = SimulatedSource::start(spec(1)).await.unwrap();
    let uri = source.resource_uri(0);
    assert!(reqwest::get(&uri).await.is_ok());
    source.shutdown();
    assert!(reqwest::get(&uri).await.is_err());
}

#[tokio::test]
async fn counted_paths_tell_who_was_asked_how_often() {
    let source = SimulatedSource::start(spec(3).count_paths(true)).await.unwrap();
    for index in [0, 1, 1] {
        reqwest::get(source.resource_uri(index)).await.unwrap();
    }
    let counts: Vec<u64> = source.requests().per_path.into_values().collect();
    assert_eq!(counts, [1, 2]);
}

#[tokio::test]
async fn a_fault_at_a_document_is_set_by_its_uri() {
    let source = SimulatedSource::start(spec(1)).await.unwrap();
    source.set_fault(source.well_known(), Fault::status(404));
    assert_eq!(reqwest::get(source.well_known()).await.unwrap().status(), StatusCode::NOT_FOUND);
    source.clear_faults();
    assert_eq!(reqwest::get(source.well_known()).await.unwrap().status(), StatusCode::OK);
}
