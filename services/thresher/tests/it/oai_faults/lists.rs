//! Lists that end early, repeat, fail or are refused, and answers that are none.

use simulated_source::{Deletions, Failure, RepositoryFault as Fault};

use super::{DAY, bears, bears_in, finds_nothing, quirk, small};
use crate::oai::Case;

#[tokio::test(flavor = "multi_thread")]
async fn deep_page_fails() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::DeepPageFails(20, 500));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{run}");
    assert!(quirk(&run, "deep-page-fails") > 0, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_complete_list_size() {
    bears_in(small(), Fault::WrongCompleteListSize(-5)).await;
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::WrongCompleteListSize(5));
    assert_eq!(case.sync(&[]).exits(1).count("gaps"), 1);
    let run = case.sync(&[]).exits(0);
    assert!(quirk(&run, "wrong-complete-list-size") > 0, "the same number came twice: {run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn short_list() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::TokenMissing(1));
    let run = case.sync(&[]).exits(1);
    assert!(quirk(&run, "short-list") > 0, "{run}");
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains("could not be read"), "{problems}");
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_record() {
    bears(Fault::RepeatedRecord, "repeated-record").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_page() {
    bears(Fault::EmptyPages(3), "empty-page").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn window_too_large() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::WindowTooLarge(40));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{run}");
    assert!(quirk(&run, "window-too-large") > 0, "{run}");
    assert_eq!(case.requests("GetRecord"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn error_with_status() {
    for status in [400, 404, 422] {
        finds_nothing(Fault::ErrorStatus(status), "error-with-status").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_error_code() {
    finds_nothing(Fault::WrongErrorCode, "wrong-error-code").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn challenged() {
    let case = Case::in_step(small()).await;
    case.repository.advance(3 * DAY);
    case.repository.fail_next(Failure::Html(200), 2);
    let run = case.sync(&[]);
    assert!(run.exit != Some(0) && quirk(&run, "challenged") == 2, "{run}");
    assert_eq!(case.copy.present().len(), 95);
    case.sync(&[]).exits(0);

    // One page of HTML among many may be that of a proxy's error: it is asked for once more.
    case.repository.advance(3 * DAY);
    case.repository.fail_next(Failure::Html(200), 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!(quirk(&run, "challenged"), 1, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verb_missing() {
    for verb in ["ListIdentifiers", "GetRecord", "ListSets"] {
        bears_in(small(), Fault::VerbMissing(verb)).await;
    }

    // Identifiers are listed where deletions are not told; without that verb, records are.
    let case = Case::in_step(small().deletions(Deletions::No)).await;
    case.repository.set_fault(Fault::VerbMissing("ListIdentifiers"));
    let mut counted = 0;
    for _ in 0..3 {
        case.repository.advance(DAY);
        case.compared_days_ago(8).await;
        counted += quirk(&case.sync(&[]), "verb-missing");
    }
    assert_eq!((counted, case.requests("ListIdentifiers")), (1, 1), "it is remembered");
    assert!(case.requests("ListRecords") >= 10, "all records are listed in its place");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn base_url_mismatch() {
    bears(Fault::OtherBaseUrl("http://localhost/oai".to_owned()), "base-url-mismatch").await;
}
