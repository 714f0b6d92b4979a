//! What stays of a large resource when a request for the rest fails.

use model::{Disposition, ProblemReason};

use super::*;

/// A case in which a job was stopped after a part of `/a` was stored; and its body.
async fn stopped_in_the_middle() -> (Case, Vec<u8>) {
    let mut case = Case::new(1).await;
    let body = body(PART + 5 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let fetching = case.begun("/a", body.len(), PART + 3 * MIB).await;
    case.has_a_part().await;
    case.stop.cancel();
    assert_eq!(fetching.await.unwrap().items[0].result, FetchedResult::Deferred);
    case.stop = CancellationToken::new();
    case.server.allow(None);
    (case, body)
}

#[tokio::test]
async fn what_came_outlives_a_request_for_the_rest_that_fails() {
    let (case, body) = stopped_in_the_middle().await;
    let file = File::new(body.clone(), "\"v1\"");
    case.server.serve("/a", file.clone().with(Ranges::Refused { beyond: 0 }));
    let done = case.fetch("/a", body.len()).await;
    let FetchedResult::Failed(failure) = &done.items[0].result else { panic!("not refused: {done:?}") };
    assert_eq!(failure.reason, ProblemReason::Throttled);
    case.server.serve("/a", file);
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
    let ranges = case.ranges();
    assert_ne!(ranges[1], None, "the rest is requested");
    assert_eq!(ranges[1], ranges[2], "nothing is requested again");
}

#[tokio::test]
async fn nothing_stays_of_a_resource_that_is_refused() {
    let (case, body) = stopped_in_the_middle().await;
    let source = case.job("/a", 1).source;
    assert_eq!(case.store.uploads_left(&source).await.unwrap().len(), 1);
    case.server.remove("/a");
    let done = case.fetch("/a", body.len()).await;
    let FetchedResult::Failed(failure) = &done.items[0].result else { panic!("not refused: {done:?}") };
    assert_eq!(failure.disposition, Disposition::Refuse);
    assert!(case.store.uploads_left(&source).await.unwrap().is_empty());
}
