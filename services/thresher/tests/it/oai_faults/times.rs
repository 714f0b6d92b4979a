//! Times: granularity, datestamps, windows, and answers that are old.

use jiff::Timestamp;
use simulated_source::{Deletions, RepositoryFault as Fault, RepositorySpec, Unit};

use super::{DAY, bears, bears_in, quirk, small};
use crate::oai::Case;

#[tokio::test(flavor = "multi_thread")]
async fn granularity_lie() {
    let case = bears(Fault::GranularityLie, "granularity-lie").await;
    case.repository.reset_requests();
    case.sync(&[]).exits(0);
    assert_eq!(case.requests("ListRecords"), 1, "it is remembered");
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
    let case = Case::in_step(small().deletions(Deletions::No)).await;
    // Its clock is ours from now on, and local time is written as UTC, two hours ahead.
    let behind = Timestamp::now().duration_since(case.repository.now().timestamp()).as_secs();
    case.repository.advance(u32::try_from(behind).expect("some years"));
    case.repository.set_fault(Fault::LocalTime(2));
    case.repository.update(5);
    case.repository.delete(7);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), quirk(&run, "future-time")), (1, 1), "{run}");
    // Nothing is concluded from what such a list omits.
    let run = case.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("stored"), run.count("absent")), (0, 0), "{run}");
    assert!(quirk(&run, "future-time") > 0, "{run}");
    // When it writes UTC, nothing is missed, though its newest datestamp is older than the one of before.
    case.repository.clear_faults();
    case.repository.update(6);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), quirk(&run, "stale-answer")), (1, 0), "{run}");
    let run = case.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!(run.count("absent"), 1, "{run}");
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
async fn datestamp_not_moved_shows_in_a_sample_and_a_list_of_all_follows() {
    // All but a few of the newest, which the list of changes has.
    let case = Case::in_step(RepositorySpec::default().seconds_apart(100_000)).await;
    (0..990).for_each(|index| case.repository.update_silently(index));
    case.compared_days_ago(31).await;
    let run = case.sync(&[]).exits(0);
    let sampled = run.count("sampled");
    assert!((1..=40).contains(&sampled), "one of a hundred: {run}");
    assert!((sampled - 1..=sampled).contains(&case.requests("GetRecord")), "{run}");
    let found = run.count("stored");
    assert!(found >= 1 && found <= sampled && found == quirk(&run, "datestamp-not-moved"), "{run}");
    // The next run lists all records, and the one after it does not.
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("sampled")), (990 - found, 0), "{run}");
    case.repository.reset_requests();
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0);
    assert_eq!((case.requests("ListRecords"), case.requests("ListIdentifiers")), (1, 0));
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
