//! A test for each fault of repositories in the wild, named after its quirk. What only a reader of one answer sees, such
//! as odd dates, has its test in `libs/oaipmh` too.

use std::time::Duration;

use simulated_source::{Deletions, Failure, RepositoryFault as Fault, RepositorySpec, Unit};

use crate::common::Run;
use crate::oai::Case;

const DAY: u32 = 86_400;

/// 95 records, 10 a page, an hour apart.
fn small() -> RepositorySpec {
    RepositorySpec::default().records(95).page_size(10).seconds_apart(3_600)
}

fn quirk(run: &Run, name: &str) -> u64 {
    run.json()["quirks"][name].as_u64().unwrap_or(0)
}

/// A repository with a fault, of which all records come, and then the one that changes. Returns both runs.
async fn bears_in(spec: RepositorySpec, fault: Fault) -> (Case, [Run; 2]) {
    let case = Case::of(spec).await;
    case.repository.set_fault(fault.clone());
    let first = case.sync(&[]).exits(0);
    assert_eq!((first.count("stored"), first.count("gaps")), (95, 0), "{fault:?} {first}");
    case.is_whole();
    case.repository.advance(2 * DAY);
    case.repository.update(5);
    let second = case.sync(&[]).exits(0);
    assert_eq!((second.count("stored"), second.count("deleted")), (1, 0), "{fault:?} {second}");
    (case, [first, second])
}

/// The same, and the quirk is counted in one of the runs.
async fn bears(fault: Fault, name: &str) {
    let (_, runs) = bears_in(small(), fault.clone()).await;
    assert!(runs.iter().any(|run| quirk(run, name) > 0), "{name} is not counted: {}", runs[0]);
}

/// A sync of a repository with a fault in some of its records. Those are problems until the fault has gone.
async fn records_are_problems(fault: Fault, at_least: u64) {
    let case = Case::of(small()).await;
    case.repository.set_fault(fault.clone());
    let run = case.sync(&[]).exits(1);
    assert_eq!(run.count("stored") + run.count("failed"), 95, "{fault:?} {run}");
    assert!(run.count("failed") >= at_least && run.count("failed") <= 20, "{fault:?} {run}");
    case.repository.clear_faults();
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("deleted"), 0, "{fault:?} {run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn granularity_lie() {
    bears(Fault::GranularityLie, "granularity-lie").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_granularity() {
    for text in ["YYYY-MM-DDTHH:MM:SSZ", "YYYY", ""] {
        bears(Fault::OddGranularity(text.to_owned()), "odd-granularity").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn datestamp_precision() {
    bears(Fault::FractionalDatestamps, "datestamp-precision").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_earliest_datestamp() {
    bears(Fault::LateEarliestDatestamp, "late-earliest-datestamp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusive_bounds() {
    let case = Case::of(small().unit(Unit::Day).sizes(false)).await;
    case.repository.set_fault(Fault::ExclusiveBounds);
    case.repository.set_fault(Fault::DeepPageFails(60, 500));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), quirk(&run, "exclusive-bounds")), (95, 1), "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn future_time() {
    // Local time that is written as UTC, two hours ahead. Windows overlap by more.
    bears_in(small(), Fault::LocalTime(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_response_date() {
    bears(Fault::OddResponseDate, "odd-response-date").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn datestamp_is_now() {
    let (case, runs) = bears_in(small(), Fault::DatestampIsNow).await;
    assert_eq!(quirk(&runs[0], "datestamp-is-now"), 1, "{}", runs[0]);
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 0, "all come again, and none is new: {run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn datestamp_not_moved() {
    let case = Case::in_step(small()).await;
    case.repository.advance(2 * DAY);
    case.repository.update_silently(5);
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0, "no list of changes has it");
    assert_eq!(case.sync(&["--mode", "baseline"]).exits(0).count("stored"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_datestamp() {
    let case = Case::in_step(small()).await;
    case.repository.set_fault(Fault::LateIndex(3_600));
    case.repository.advance(DAY);
    case.repository.update(5);
    case.repository.advance(60);
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0, "the index does not show it yet");
    case.repository.advance(3_700);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), quirk(&run, "late-datestamp")), (1, 1), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_answer() {
    let case = Case::in_step(small()).await;
    case.repository.advance(DAY);
    let before = case.repository.now().seconds();
    case.repository.set_fault(Fault::StaleAnswers(before + 1, before));
    case.repository.advance(60);
    case.repository.update(5);
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0, "a cache answers");
    // A list without dates is no answer of that cache.
    assert_eq!(case.sync(&["--mode", "baseline"]).exits(0).count("stored"), 1);

    // The cache answers with what it had before the newest record that is stored.
    let known = case.repository.now().seconds();
    case.repository.set_fault(Fault::StaleAnswers(known + i64::from(DAY), before));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("deleted"), quirk(&run, "stale-answer")), (0, 1), "{run}");
    // The fault has gone, and nothing that changed meanwhile is missed.
    case.repository.update(7);
    case.repository.clear_faults();
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 1);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_selective_harvest() {
    bears(Fault::IgnoresDates, "no-selective-harvest").await;
}

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
    bears(Fault::TokenNotExclusive, "token-not-exclusive").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_verbatim() {
    bears(Fault::TokenVerbatim, "token-verbatim").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn encoded_token() {
    bears(Fault::EncodedToken, "encoded-token").await;
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
async fn deep_page_fails() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::DeepPageFails(20, 500));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{run}");
    assert!(quirk(&run, "deep-page-fails") > 0, "{run}");
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

/// Two runs of a repository in which nothing changes for days.
async fn finds_nothing(fault: Fault, name: &str) {
    let case = Case::in_step(small()).await;
    case.repository.set_fault(fault.clone());
    for _ in 0..2 {
        case.repository.advance(3 * DAY);
        let run = case.sync(&[]).exits(0);
        assert_eq!(run.json()["in_sync"], true, "{fault:?} {run}");
    }
    case.repository.advance(3 * DAY);
    assert!(quirk(&case.sync(&[]).exits(0), name) > 0, "{fault:?}");
    assert_eq!(case.copy.present().len(), 95);
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
    case.repository.fail_next(Failure::Html(200), 1);
    let run = case.sync(&[]);
    assert!(run.exit != Some(0) && quirk(&run, "challenged") > 0, "{run}");
    assert_eq!(case.copy.present().len(), 95);
    case.sync(&[]).exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gzip() {
    bears(Fault::UnlabelledGzip, "gzip").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_compression() {
    let (case, runs) = bears_in(small().gzip(true), Fault::BrokenGzip).await;
    assert_eq!(quirk(&runs[0], "no-compression"), 1, "{}", runs[0]);
    let requests = case.requests("ListRecords");
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0);
    assert_eq!(case.requests("ListRecords") - requests, 1, "it is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn base_url_mismatch() {
    bears(Fault::OtherBaseUrl("http://localhost/oai".to_owned()), "base-url-mismatch").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn illegal_character() {
    bears(Fault::IllegalCharacters(10), "illegal-character").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8() {
    records_are_problems(Fault::Latin1(10), 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undeclared_prefix() {
    records_are_problems(Fault::UndeclaredPrefix(10), 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_declared_on_the_envelope() {
    bears_in(small(), Fault::EnvelopeNamespaces).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_xml_declaration() {
    bears(Fault::InnerXmlDeclaration(10), "inner-xml-declaration").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_document() {
    let case = Case::of(small()).await;
    case.repository.fail_next(Failure::Cut(3_000), 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), quirk(&run, "cut-document")), (95, 1), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_record() {
    records_are_problems(Fault::BrokenRecord(10), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trailing_bytes() {
    bears(Fault::TrailingBytes, "trailing-bytes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefixed_oai_namespace() {
    bears(Fault::Prefixed, "prefixed-oai-namespace").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_metadata() {
    records_are_problems(Fault::EmptyMetadata(10), 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promised_deletes_missing() {
    let case = Case::in_step(small()).await;
    case.repository.set_fault(Fault::PromisedDeletesMissing);
    case.repository.advance(DAY);
    case.repository.delete(5);
    assert_eq!(case.sync(&[]).exits(0).count("deleted"), 0, "no list shows it");
    for deleted in [0, 1] {
        case.repository.advance(DAY);
        let run = case.sync(&["--mode", "baseline"]).exits(0);
        assert_eq!(
            (run.count("deleted"), quirk(&run, "promised-deletes-missing")),
            (deleted, deleted),
            "{run}"
        );
    }
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_unknown() {
    let case = Case::in_step(small()).await;
    case.repository.set_fault(Fault::DeletedUnknown);
    case.repository.advance(2 * DAY);
    case.repository.delete(5);
    assert_eq!(case.sync(&[]).exits(0).count("deleted"), 1, "its header says so");
    case.is_whole();

    // A list of one set does not prove it, and GetRecord says that there is none.
    let case = Case::of(small()).await;
    case.sync(&["--set", "group:1"]).exits(0);
    case.repository.set_fault(Fault::DeletedUnknown);
    case.repository.advance(2 * DAY);
    case.repository.delete(5);
    let run = case.sync(&["--set", "group:1"]).exits(1);
    assert_eq!((run.count("deleted"), quirk(&run, "deleted-unknown")), (0, 1), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_and_live() {
    let case = Case::in_step(small().sizes(false)).await;
    case.repository.set_fault(Fault::DeletedAndLive);
    case.repository.advance(2 * DAY);
    case.repository.delete(5);
    let run = case.sync(&[]);
    assert_eq!(run.count("deleted"), 0, "it is shown as live, too: {run}");
    assert!(quirk(&run, "deleted-and-live") > 0, "{run}");
    case.repository.clear_faults();
    case.repository.advance(60);
    assert_eq!(case.sync(&[]).exits(0).count("deleted"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_in_one_set() {
    let case = Case::of(small()).await;
    case.sync(&["--set", "group:1"]).exits(0);
    case.repository.set_fault(Fault::DeletedInOneSet);
    case.repository.advance(2 * DAY);
    case.repository.leave_set(1);
    let run = case.sync(&["--set", "group:1"]).exits(0);
    assert_eq!(run.count("deleted"), 0, "it is there, in no set: {run}");
    assert_eq!(quirk(&run, "deleted-in-one-set"), 1, "{run}");
    assert_eq!(case.copy.state(&case.uri(1)).as_deref(), Some("present"));
    case.repository.advance(DAY);
    case.repository.delete(5);
    assert_eq!(case.sync(&["--set", "group:1"]).exits(0).count("deleted"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_in_first_list() {
    let case = Case::of(small().records(200).deleted_every(2)).await;
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (100, 0), "{run}");
    assert_eq!(quirk(&run, "deletes-in-first-list"), 1, "{run}");
    assert_eq!(case.requests("GetRecord"), 0);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn set_ignored() {
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::SetIgnored);
    let run = case.sync(&["--set", "group:1"]).exits(0);
    assert_eq!(run.count("stored"), 24, "{run}");
    assert!(quirk(&run, "set-ignored") > 0, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn set_vanished() {
    for deletions in [Deletions::No, Deletions::Persistent] {
        let case = Case::of(small().deletions(deletions)).await;
        case.sync(&["--set", "group:1"]).exits(0);
        case.repository.advance(3 * DAY);
        case.repository.remove_set(1);
        for mode in ["incremental", "baseline"] {
            let run = case.sync(&["--set", "group:1", "--mode", mode, "--rediscover"]).exits(1);
            assert_eq!((run.json()["in_sync"].as_bool(), run.count("deleted")), (Some(false), 0), "{run}");
            assert!(quirk(&run, "set-vanished") > 0, "{run}");
        }
        assert_eq!(case.copy.present().len(), 24);
        let problems = case.copy.run("problems", &[]).stdout;
        assert!(problems.contains("group%3A1"), "{problems}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_unreadable() {
    bears(Fault::SetsUnreadable, "sets-unreadable").await;
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::SetsUnreadable);
    assert_eq!(case.sync(&["--set", "group:1"]).exits(0).count("stored"), 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn verb_missing() {
    for verb in ["ListIdentifiers", "GetRecord", "ListSets"] {
        bears_in(small(), Fault::VerbMissing(verb)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_doi() {
    bears(Fault::BareDoi, "bare-doi").await;
}
