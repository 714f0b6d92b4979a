//! Ranges that do not end in the time of a job: what came in order is kept, and counts.

use model::ProblemReason;
use store::{DATA_DIRECTORY, spooled_bytes};
use tempfile::TempDir;

use super::*;

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
