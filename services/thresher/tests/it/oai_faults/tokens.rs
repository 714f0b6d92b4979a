//! Tokens that loop, die, or are to be sent in another form.

use std::time::Duration;

use simulated_source::{Failure, RepositoryFault as Fault};

use super::{bears, bears_in, quirk, remembers, small};
use crate::oai::Case;

#[tokio::test(flavor = "multi_thread")]
async fn token_loop() {
    let case = Case::of(small().sizes(false)).await;
    case.repository.set_fault(Fault::TokenLoop(1));
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 95, "{run}");
    assert!(quirk(&run, "token-loop") > 0, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_token() {
    bears(Fault::UnchangedToken, "unchanged-token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_after_end() {
    bears_in(small(), Fault::TokenAfterEnd { error: false }).await;
    bears(Fault::TokenAfterEnd { error: true }, "token-after-end").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_missing() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::TokenMissing(3));
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.count("gaps"), run.count("deleted")), (1, 0), "{run}");
    assert!(quirk(&run, "short-list") > 0 && quirk(&run, "token-missing") > 0, "{run}");
    case.repository.clear_faults();
    case.sync(&[]).exits(0);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn token_not_exclusive() {
    remembers(Fault::TokenNotExclusive, "token-not-exclusive").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_verbatim() {
    remembers(Fault::TokenVerbatim, "token-verbatim").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn encoded_token() {
    remembers(Fault::EncodedToken, "encoded-token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn short_token_life() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::ShortTokenLife(Duration::ZERO));
    let run = case.sync(&[]).exits(0);
    assert!(quirk(&run, "short-token-life") > 0, "{run}");
    assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn token_loses_set() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::TokenLosesSet);
    let run = case.sync(&["--set", "group:1"]).exits(0);
    assert_eq!(run.count("stored"), 24, "{run}");
    assert!(quirk(&run, "token-loses-set") > 0, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn token_advances() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::TokenAdvances);
    // The answer breaks off behind the server's cursor.
    case.repository.fail_next(Failure::Cut(100_000), 3);
    case.repository.fail_next(Failure::Cut(2_000), 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{run}");
    case.is_whole();

    // The answer to a token is lost before its first byte, so that the token is sent again.
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::TokenAdvances);
    case.repository.fail_next(Failure::Cut(100_000), 3);
    case.repository.fail_next(Failure::Lost(503), 1);
    let run = case.copy.sync(&case.repository.base_url()).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{run}");
    assert!(quirk(&run, "token-advances") > 0, "{run}");
    case.is_whole();
}
