//! Each fault as a client sees it.
#![expect(clippy::disallowed_methods, reason = "bodies that the test made itself are small")]

use futures::StreamExt as _;
use reqwest::{StatusCode, header};
use simulated_source::{Fault, SimulatedSource, Size, SourceSpec};

async fn source() -> SimulatedSource {
    SimulatedSource::start(SourceSpec::default().resources(40).size(Size::Fixed(100_000))).await.unwrap()
}

async fn text(uri: &str) -> String {
    reqwest::get(uri).await.unwrap().text().await.unwrap()
}

/// How many bytes arrive, and whether the body ends without error.
async fn drain(uri: &str) -> (usize, bool) {
    let mut body = reqwest::get(uri).await.unwrap().bytes_stream();
    let mut count = 0;
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => count += piece.len(),
            Err(_) => return (count, false),
        }
    }
    (count, true)
}

#[tokio::test]
async fn busy_says_when_to_come_back_and_then_serves() {
    let source = source().await;
    source.set_fault(3, Fault::busy(7, 2));
    for _ in 0..2 {
        let answer = reqwest::get(source.resource_uri(3)).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[header::RETRY_AFTER], "7");
    }
    assert_eq!(reqwest::get(source.resource_uri(3)).await.unwrap().status(), StatusCode::OK);
    assert_eq!(reqwest::get(source.resource_uri(4)).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn wrong_length_is_in_the_list_while_the_body_is_true() {
    let source = source().await;
    source.set_fault(3, Fault::WrongLength);
    let list = text(&source.resource_list()).await;
    assert_eq!(list.matches("length=\"100001\"").count(), 1);
    assert_eq!(drain(&source.resource_uri(3)).await, (100_000, true));
}

#[tokio::test]
async fn wrong_digest_differs_in_one_byte_of_the_body() {
    let source = source().await;
    source.set_fault(3, Fault::WrongDigest);
    let uri = source.resource_uri(3);
    let served = reqwest::get(&uri).await.unwrap().bytes().await.unwrap();
    let truth = source.body(&uri).unwrap();
    assert_ne!(served[0], truth[0]);
    assert_eq!(served[1..], truth[1..]);
}

#[tokio::test]
async fn a_cut_off_body_breaks_after_the_bytes_it_promised_to_send() {
    let source = source().await;
    source.set_fault(3, Fault::CutOff { after: 70_000, times: Some(1) });
    assert_eq!(drain(&source.resource_uri(3)).await, (70_000, false));
    assert_eq!(drain(&source.resource_uri(3)).await, (100_000, true));
    source.set_fault(source.resource_list(), Fault::cut_off(100));
    assert_eq!(drain(&source.resource_list()).await, (100, false));
}

#[tokio::test]
async fn a_redirect_leads_to_the_other_resource() {
    let source = source().await;
    let path = source.resource_uri(4).replace(&source.url(), "");
    source.set_fault(3, Fault::Redirect(path));
    let answer = reqwest::get(source.resource_uri(3)).await.unwrap();
    assert_eq!(answer.url().as_str(), source.resource_uri(4));
}

#[tokio::test]
async fn a_truncated_document_ends_in_the_middle_of_an_entry() {
    let source = source().await;
    source.set_fault(source.resource_list(), Fault::TruncateDocument);
    let list = text(&source.resource_list()).await;
    assert_eq!((list.matches("<url>").count(), list.matches("</url>").count()), (21, 20));
    assert!(!list.contains("</urlset>"));
}

#[tokio::test]
async fn a_malformed_document_goes_on_after_its_wrong_tag() {
    let source = source().await;
    source.set_fault(source.resource_list(), Fault::MalformedDocument);
    let list = text(&source.resource_list()).await;
    assert_eq!((list.matches("<loc>").count(), list.matches("</loc>").count()), (40, 39));
    assert!(list.contains("</urlset>"));
}

#[tokio::test]
async fn an_html_page_is_served_as_if_nothing_were_wrong() {
    let source = source().await;
    source.set_fault(source.change_list(), Fault::HtmlPage);
    let answer = reqwest::get(source.change_list()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.text().await.unwrap().starts_with("<!DOCTYPE html>"));
}

#[tokio::test]
async fn a_slow_answer_comes_after_its_delay() {
    let source = source().await;
    let delay = std::time::Duration::from_millis(150);
    source.set_fault(3, Fault::Slow(delay));
    let begun = tokio::time::Instant::now();
    assert_eq!(drain(&source.resource_uri(3)).await, (100_000, true));
    assert!(begun.elapsed() >= delay);
}
