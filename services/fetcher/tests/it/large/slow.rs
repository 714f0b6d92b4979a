//! Ranges that do not end in the time of a job, and servers that do not answer in it: what came in order is kept, and
//! counts.

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use model::ProblemReason;
use store::{DATA_DIRECTORY, spooled_bytes};
use tempfile::TempDir;

use super::*;
use crate::common::{client_of, client_of_silence, client_that_is_led_astray};

/// Bytes that a spool file may lack: they are written in batches.
const BATCH: usize = 256 * 1024;
/// The time of a job, and as much for its open ranges.
const TWO_JOBS: Duration = Duration::from_secs(121);

/// A job with three ranges, each of which stands still after so many bytes; its store is in the directory.
async fn stalled(after: usize) -> (Case, Vec<u8>, tokio::task::JoinHandle<VerifyJob>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let target: StoreTarget = directory.path().to_str().unwrap().parse().unwrap();
    let mut case = Case::new(4).await;
    case.store = Store::open(&target, StoreOptions::default()).await.unwrap();
    case.range_bytes = 4 * MIB;
    let body = body(13 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(Ranges::Stalled { after }));
    let fetching = case.begin("/a", body.len());
    let spool = directory.path().join(DATA_DIRECTORY).join("spool");
    let spooled = 3 * (after - BATCH) as u64;
    until("three ranges stand still", || case.server.stalled() == 3 && spooled_bytes(&spool) >= spooled)
        .await;
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    (case, body, fetching, directory)
}

/// The next job continues behind at least so many bytes.
async fn assert_continues(case: &Case, body: &[u8], least: usize) {
    let before = case.begins().len();
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, body).await;
    let first = *case.begins()[before..].iter().min().expect("the rest is requested");
    assert!(first >= least, "{:?}", case.begins());
}

#[tokio::test]
async fn when_the_time_is_over_what_came_in_order_counts() {
    let (case, body, fetching, _directory) = stalled(7 * MIB / 4).await;
    tokio::time::pause();
    tokio::time::advance(TWO_JOBS).await;
    let done = fetching.await.unwrap();
    tokio::time::resume();
    assert_eq!(done.items[0].result, FetchedResult::Deferred, "{done:?}");
    assert_continues(&case, &body, MIB).await;
}

#[tokio::test]
async fn a_job_with_too_few_bytes_fails_and_they_are_kept() {
    let (case, body, fetching, _directory) = stalled(7 * MIB / 8).await;
    tokio::time::pause();
    tokio::time::advance(TWO_JOBS).await;
    let done = fetching.await.unwrap();
    tokio::time::resume();
    let FetchedResult::Failed(failure) = &done.items[0].result else { panic!("not too slow: {done:?}") };
    assert_eq!(failure.reason, ProblemReason::TooSlow);
    assert_continues(&case, &body, MIB / 8).await;
}

#[tokio::test]
async fn a_fetcher_that_stops_keeps_what_came_in_order() {
    let (mut case, body, fetching, _directory) = stalled(7 * MIB / 4).await;
    case.stop.cancel();
    let done = fetching.await.unwrap();
    assert_eq!(done.items[0].result, FetchedResult::Deferred, "{done:?}");
    case.stop = CancellationToken::new();
    assert_continues(&case, &body, MIB).await;
}

#[tokio::test]
async fn a_server_that_no_longer_answers_fails_a_resource_that_is_continued() {
    let (mut case, body, fetching, _directory) = stalled(7 * MIB / 4).await;
    case.stop.cancel();
    assert_eq!(fetching.await.unwrap().items[0].result, FetchedResult::Deferred);
    case.stop = CancellationToken::new();
    let fetcher = case.fetcher_over(client_of_silence());
    tokio::time::pause();
    let done = fetcher.fetch(&case.job("/a", body.len())).await.unwrap();
    tokio::time::resume();
    let FetchedResult::Failed(failure) = &done.items[0].result else { panic!("not failed: {done:?}") };
    assert_eq!(failure.reason, ProblemReason::TooSlow);
    assert_continues(&case, &body, MIB).await;
}

#[tokio::test(start_paused = true)]
async fn slow_redirects_fail_a_large_resource() {
    let case = Case::new(1).await;
    let fetcher = case.fetcher_over(client_of(|request| {
        let head = http::Response::builder().status(302).header("location", format!("{}x", request.uri()));
        let answer = head.body(stream::empty().boxed()).expect("a head");
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(45)).await;
            Ok(answer)
        })
    }));
    let done = fetcher.fetch(&case.job("/a", 9 * MIB)).await.unwrap();
    let FetchedResult::Failed(failure) = &done.items[0].result else { panic!("not failed: {done:?}") };
    assert_eq!(failure.reason, ProblemReason::Timeout);
}

#[tokio::test(start_paused = true)]
async fn so_does_a_server_that_leads_from_one_slow_host_to_the_next() {
    let case = Case::new(1).await;
    let fetcher = case.fetcher_over(client_that_is_led_astray());
    for _ in 0..2 {
        let done = fetcher.fetch(&case.job("/a", 9 * MIB)).await.unwrap();
        let FetchedResult::Failed(failure) = &done.items[0].result else { panic!("not failed: {done:?}") };
        assert_eq!(failure.reason, ProblemReason::TooSlow);
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_turn_is_not_the_servers() {
    let case = Case::new(1).await;
    let body = body(9 * MIB);
    let whole = body.clone();
    let client = client_of(move |_| {
        let head = http::Response::builder().header("etag", "\"v1\"").header("accept-ranges", "bytes");
        let head = head.header("content-length", whole.len().to_string());
        let pieces = stream::iter([Ok(Bytes::from(whole.clone()))]);
        let answer = head.body(pieces.boxed()).expect("a head");
        Box::pin(async move { Ok(answer) })
    });
    let job = case.job("/a", body.len());
    client.rest(&job.origin, Duration::from_secs(70));
    let done = case.fetcher_over(client).fetch(&job).await.unwrap();
    case.assert_stored(&done, &body).await;
}
