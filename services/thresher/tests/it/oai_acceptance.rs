//! What a harvest of OAI-PMH has to show, in numbers. docs/OAI-PMH.md says which test proves which point.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::TryStreamExt as _;
use simulated_source::{Failure, RepositoryFault, RepositorySpec, Unit};

use crate::common::{Inside, Process, Run};
use crate::oai::Case;

const DAY: u32 = 86_400;

impl Case {
    /// How often each resource is in the change log.
    async fn changes(&self) -> BTreeMap<String, u64> {
        let inside = Inside::of(&self.copy, &self.repository.base_url()).await;
        let mut changes = inside.catalog.scan_changes(0).await.expect("a catalog");
        let mut counts = BTreeMap::new();
        while let Some((_, change)) = changes.try_next().await.expect("a catalog") {
            *counts.entry(change.uri.to_string()).or_default() += 1;
        }
        drop(changes);
        inside.close().await;
        counts
    }

    /// Checks that each of so many resources is in the change log once.
    #[track_caller]
    fn has_once(counts: &BTreeMap<String, u64>, resources: usize) {
        let often: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(often.is_empty(), "{often:?}");
        assert_eq!(counts.len(), resources);
    }

    /// Checks that each record has the metadata that the repository gives now.
    #[track_caller]
    fn is_as_given(&self) {
        let audit = self.copy.run("audit", &[&self.repository.base_url(), "--sample", "10000", "--json"]);
        let run: Run = audit.exits(0);
        assert_eq!(run.count("matching"), run.count("held"), "{run}");
    }
}

/// 1,000 records, 100 a page.
fn thousand() -> RepositorySpec {
    RepositorySpec::default().seconds_apart(3_600)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_records_cost_ten_lists_and_a_second_run_writes_no_record() {
    let case = Case::of(thousand().deleted_every(10)).await;
    case.sync(&[]).exits(0);
    assert_eq!((case.requests("ListRecords"), case.requests("GetRecord")), (10, 0));
    let ls = case.copy.ls();
    let of_state = |state: &str| ls.values().filter(|held| held.state == state).count();
    assert_eq!((of_state("present"), of_state("deleted")), (900, 100));
    let before = case.changes().await;
    Case::has_once(&before, 900);
    case.sync(&[]).exits(0);
    assert_eq!(case.changes().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn mets_that_differ_only_in_the_time_of_the_answer_are_no_change() {
    let case = Case::of(RepositorySpec::default().records(30).page_size(10).files(2)).await;
    let run = case.sync(&["--metadata-prefix", "mets"]).exits(0);
    assert_eq!(run.count("stored"), 30, "{run}");
    for _ in 0..5 {
        case.repository.advance(DAY);
        let run = case.sync(&["--metadata-prefix", "mets", "--mode", "baseline"]).exits(0);
        assert_eq!((run.count("stored"), run.count("unchanged")), (0, 30), "{run}");
    }
    Case::has_once(&case.changes().await, 30);
    case.repository.update(3);
    let run = case.sync(&["--metadata-prefix", "mets", "--mode", "baseline"]).exits(0);
    assert_eq!(run.count("stored"), 1, "a real change is one: {run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_two_pages_with_tokens_of_a_minute_doubles_no_record() {
    let case = Case::of(thousand().latency(Duration::from_millis(50))).await;
    case.repository.set_fault(RepositoryFault::ShortTokenLife(Duration::from_secs(60)));
    let base = case.repository.base_url();
    case.repository.allow("ListRecords", 5);
    let sync = Process::start(&mut case.copy.command("sync", &[&base]));
    sync.kill_when(|| case.requests("ListRecords") >= 5).await;
    case.repository.allow_all();
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("failed"), run.count("gaps")), (0, 0), "{run}");
    case.is_whole();
    Case::has_once(&case.changes().await, 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_offset_tokens_skip_are_held_at_the_end() {
    let spec = thousand().deletions(simulated_source::Deletions::No).latency(Duration::from_millis(20));
    let case = Case::of(spec).await;
    case.repository.set_fault(RepositoryFault::OffsetTokens);
    let base = case.repository.base_url();
    case.repository.allow("ListRecords", 4);
    let mut sync = Process::start(&mut case.copy.command("sync", &[&base]));
    assert!(sync.until(|| case.requests("ListRecords") >= 4).await, "it ended too early");
    // They leave the list, and all behind them move up.
    (10..15).for_each(|index| case.repository.delete(index));
    case.repository.allow_all();
    assert_eq!(sync.end(), Some(0));
    let present = case.copy.present();
    let skipped: Vec<u64> = (15..1_000).filter(|index| !present.contains_key(&case.uri(*index))).collect();
    assert!(skipped.is_empty(), "{skipped:?}");
    let log = case.repository.requests();
    assert!(log.count("ListRecords") <= 20 && log.count("GetRecord") <= 5, "{:?}", log.by_verb);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_offset_tokens_skip_while_others_change_are_held_after_the_next_run() {
    let case = Case::of(thousand().latency(Duration::from_millis(20))).await;
    case.repository.set_fault(RepositoryFault::OffsetTokens);
    let base = case.repository.base_url();
    case.repository.allow("ListRecords", 4);
    let mut sync = Process::start(&mut case.copy.command("sync", &[&base]));
    assert!(sync.until(|| case.requests("ListRecords") >= 4).await, "it ended too early");
    // They move to the end of the list, which is as long as before: nothing tells that records are skipped.
    (10..15).for_each(|index| case.repository.update(index));
    case.repository.allow_all();
    assert_eq!(sync.end(), Some(0));
    case.repository.reset_requests();
    let run = case.sync(&[]).exits(0);
    case.is_whole();
    let log = case.repository.requests();
    // Beside the skipped records, a few are drawn at random as a sample.
    let asked = log.count("GetRecord") - run.count("sampled");
    assert!(log.count("ListIdentifiers") <= 10 && asked <= 5, "{:?} {run}", log.by_verb);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_six_hours_late_hides_nothing_from_daily_runs() {
    let case = Case::in_step(thousand()).await;
    case.repository.set_fault(RepositoryFault::LateIndex(6 * 3_600));
    for day in 0..10 {
        case.repository.advance(DAY - 3_600);
        // So late that the run before did not see them, and earlier than it began.
        (0..50).for_each(|n| case.repository.update(day * 50 + n));
        case.repository.advance(3_000);
        case.sync(&[]).exits(0);
    }
    case.repository.advance(DAY);
    case.sync(&[]).exits(0);
    case.repository.clear_faults();
    case.is_whole();
    case.is_as_given();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_record_of_ten_thousand_that_fails_everywhere_is_one_problem() {
    // All of one day.
    let case = Case::of(RepositorySpec::default().records(10_000).seconds_apart(8)).await;
    case.repository.set_fault(RepositoryFault::FailingRecord(4_321, 500));
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (9_999, 1, 0), "{run}");
    let log = case.repository.requests();
    assert!(log.by_status[&500] <= 60, "{:?}", log.by_status);
    assert!(log.count("ListRecords") <= 2 * 100 + 60, "{:?}", log.by_verb);
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains(&case.uri(4_321)), "{problems}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_records_delete_nothing() {
    let spec = || thousand().records(95).page_size(10);
    // Nothing changed for days, and the repository says so with an error status.
    let case = Case::in_step(spec()).await;
    case.repository.advance(3 * DAY);
    case.sync(&[]).exits(0);
    case.repository.advance(3 * DAY);
    case.repository.set_fault(RepositoryFault::ErrorStatus(422));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.json()["in_sync"].as_bool(), run.count("deleted")), (Some(true), 0), "{run}");

    for failure in [Failure::Html(403), Failure::Html(200), Failure::Empty(200)] {
        let case = Case::in_step(spec()).await;
        case.repository.advance(DAY);
        case.repository.fail_next(failure, 1_000);
        for mode in ["incremental", "baseline"] {
            let run = case.sync(&["--mode", mode, "--absent", "delete"]);
            assert!(run.exit != Some(0), "{failure:?} {mode} {run}");
            assert_eq!(case.copy.present().len(), 95, "{failure:?} {mode} {run}");
        }
        case.repository.clear_faults();
        case.sync(&["--mode", "baseline"]).exits(0);
        case.is_whole();
    }

    // The lists are there, and have no record.
    let case = Case::in_step(spec()).await;
    case.repository.advance(DAY);
    case.repository.set_fault(RepositoryFault::EmptyLists);
    for mode in ["incremental", "baseline", "baseline"] {
        case.repository.advance(DAY);
        let run = case.sync(&["--mode", mode, "--absent", "delete", "--max-deletes", "100"]).exits(1);
        assert_eq!(run.json()["in_sync"].as_bool(), Some(false), "{mode} {run}");
        assert_eq!(case.copy.present().len(), 95, "{mode} {run}");
    }
    case.repository.clear_faults();
    case.sync(&["--mode", "baseline"]).exits(0);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_940_records_that_promised_1_000_is_not_in_sync() {
    let case = Case::of(thousand().page_size(94)).await;
    case.repository.set_fault(RepositoryFault::TokenMissing(9));
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.json()["in_sync"].as_bool(), run.count("gaps")), (Some(false), 1), "{run}");
    assert!(run.json()["quirks"]["short-list"].as_u64() > Some(0), "{run}");
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains("940 records came of 1000"), "{problems}");
    let report = case.copy.run("report", &[]).stdout;
    assert!(report.contains("940 records came of 1000") && report.contains("short-list"), "{report}");
    // The same window is asked for again, not what changed since.
    case.repository.clear_faults();
    case.repository.advance(30 * DAY);
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 60, "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn six_hundred_of_five_thousand_deletions_wait_and_four_hundred_do_not() {
    for (deleted, held) in [(600, 5_000), (400, 4_600)] {
        let case = Case::in_step(RepositorySpec::default().records(5_000).page_size(500)).await;
        case.repository.advance(DAY);
        (0..deleted).for_each(|index| case.repository.delete(index));
        let run = case.sync(&[]).exits(if deleted == 600 { 3 } else { 0 });
        assert_eq!(case.copy.present().len(), held, "{run}");
        case.sync(&["--max-deletes", "20%"]).exits(0);
        case.is_whole();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_vanish_are_deleted_after_a_second_list_of_identifiers() {
    let case = Case::in_step(thousand().deletions(simulated_source::Deletions::No)).await;
    (0..20).for_each(|index| case.repository.delete(index * 7));
    for (absent, deleted) in [(20, 0), (0, 20), (0, 0)] {
        case.repository.advance(8 * DAY);
        case.compared_days_ago(8).await;
        case.repository.reset_requests();
        let run = case.sync(&[]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), (absent, deleted), "{run}");
        assert!(case.requests("ListIdentifiers") >= 10, "{:?}", case.repository.requests().by_verb);
    }
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_cut_in_a_record_is_read_again_and_doubles_nothing() {
    let case = Case::of(thousand().records(100).page_size(100)).await;
    let whole = case.repository.metadata(0, "oai_dc").expect("metadata").len();
    // Somewhere in a record behind the fiftieth.
    case.repository.fail_next(Failure::Cut(57 * (whole + 200)), 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (100, 0, 0), "{run}");
    assert_eq!(run.json()["quirks"]["cut-document"], 1, "{run}");
    assert_eq!(case.requests("ListRecords"), 2);
    case.is_whole();
    Case::has_once(&case.changes().await, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_cost_no_record_unless_reading_is_strict() {
    let case = Case::of(thousand().records(100)).await;
    case.repository.set_fault(RepositoryFault::IllegalCharacters(33));
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 100, "{run}");
    let counted = run.json()["quirks"]["illegal-character"].as_u64();
    assert!(matches!(counted, Some(3 | 4)), "{run}");
    let strict = Case::of(thousand().records(100)).await;
    strict.repository.set_fault(RepositoryFault::IllegalCharacters(33));
    let run = strict.sync(&["--strict"]);
    assert!(run.exit != Some(0), "{run}");
    let problems = strict.copy.run("problems", &[]).stdout;
    assert!(problems.contains("line ") && problems.contains("column "), "{problems}");
    let is_named =
        |index: u64| problems.contains(&format!("in record {}:", strict.repository.identifier(index)));
    assert_eq!((0..100).filter(|index| is_named(*index)).count(), 1, "the record is named: {problems}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_changes_of_one_day_are_held_where_a_repository_knows_only_days() {
    let case = Case::in_step(thousand().records(95).unit(Unit::Day)).await;
    case.repository.advance(DAY);
    for _ in 0..2 {
        case.repository.update(3);
        let run = case.sync(&[]).exits(0);
        assert_eq!(run.count("stored"), 1, "{run}");
    }
    let log = case.repository.requests().requests;
    let from = log.iter().filter_map(|request| request.split_once("from=")?.1.split('&').next());
    let from: Vec<&str> = from.collect();
    assert!(!from.is_empty() && from.iter().all(|from| from.len() == "2026-01-01".len()), "{from:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_asks_for_patience_deep_in_a_list_is_left_alone_and_then_asked_on() {
    for token_dies in [false, true] {
        let case = Case::of(thousand().latency(Duration::from_millis(20))).await;
        let base = case.repository.base_url();
        case.repository.allow("ListRecords", 6);
        let mut sync = Process::start(&mut case.copy.command("sync", &[&base]));
        assert!(sync.until(|| case.requests("ListRecords") >= 6).await, "it ended too early");
        case.repository.fail_next(Failure::Status(503, 2), 1);
        // The one that fails, unless that is the sixth.
        case.repository.allow("ListRecords", 1);
        assert!(sync.until(|| case.repository.requests().by_status.contains_key(&503)).await, "no failure");
        if token_dies {
            case.repository.expire_tokens();
        }
        case.repository.allow_all();
        assert_eq!(sync.end(), Some(0));
        let log = case.repository.requests();
        assert_eq!(log.impatient, 0, "{log:?}");
        let most = if token_dies { 10 + 10 } else { 10 + 1 };
        assert!(log.count("ListRecords") <= most, "{token_dies}: {:?}", log.by_verb);
        case.is_whole();
        Case::has_once(&case.changes().await, 1_000);
    }
}
