//! A list of many pages is read by several windows at the same time, and loses nothing by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use simulated_source::{Failure, RepositoryFault, RepositorySpec, Unit};

use crate::common::Process;
use crate::oai::Case;

const DAY: u32 = 86_400;
/// Pages of the list.
const PAGES: u64 = 200;
/// Requests that a split costs at most: two for each of twelve halves, the first page once more, and the last pages of
/// windows.
const SPLIT: u64 = 24 + 1 + 30;

/// A latency in which all windows have asked for a page, however busy the machine is.
const SLOW: Duration = Duration::from_millis(60);

/// 2,000 records of 83 days, 10 a page.
fn many() -> RepositorySpec {
    RepositorySpec::default()
        .records(PAGES * 10)
        .page_size(10)
        .seconds_apart(3_600)
        .latency(Duration::from_millis(5))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_many_pages_is_read_by_windows_at_the_same_time() {
    for unit in [Unit::Second, Unit::Day] {
        let case = Case::of(many().unit(unit).deleted_every(10).latency(SLOW)).await;
        let run = case.sync(&[]).exits(0);
        assert_eq!((run.count("stored"), run.count("gaps"), run.count("failed")), (1_800, 0, 0), "{run}");
        assert_eq!(run.json()["in_sync"], true, "{run}");
        case.is_whole();
        let log = case.repository.requests();
        assert_eq!(log.max_open, 3, "of four requests at the origin, one is left to others");
        let lists = log.count("ListRecords") + log.count("ListIdentifiers");
        // By days, halves share two days, which are 48 records.
        assert!(lists <= PAGES + SPLIT + 12 * 6, "{unit:?}: {:?}", log.by_verb);
        let dated = log.requests.iter().filter(|request| request.contains("until=")).count();
        assert!(dated > 2, "{dated}");

        case.repository.advance(2 * DAY);
        case.repository.update(7);
        case.repository.reset_requests();
        assert_eq!(case.sync(&[]).exits(0).count("stored"), 1);
        // The day before the first list began has 24 records.
        assert!((1..=6).contains(&case.requests("ListRecords")), "{unit:?}");
        assert_eq!(case.requests("ListIdentifiers"), 0, "{unit:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_whose_dates_or_sizes_are_no_help_is_read_as_one_list() {
    for (fault, spec) in [
        (RepositoryFault::IgnoresDates, many()),
        (RepositoryFault::GranularityLie, many()),
        (RepositoryFault::VerbMissing("ListIdentifiers"), many()),
        (RepositoryFault::ErrorStatus(422), many().sizes(false)),
        (RepositoryFault::Prefixed, many().seconds_apart(0)),
    ] {
        let case = Case::of(spec).await;
        case.repository.set_fault(fault.clone());
        let run = case.sync(&[]).exits(0);
        assert_eq!((run.count("stored"), run.count("gaps")), (2_000, 0), "{fault:?} {run}");
        case.is_whole();
        let log = case.repository.requests();
        assert_eq!(log.max_open, 1, "{fault:?}");
        let lists = log.count("ListRecords") + log.count("ListIdentifiers");
        assert!(lists <= PAGES + 25, "{fault:?}: {:?}", log.by_verb);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_is_lost_between_two_windows_however_their_bounds_are_read() {
    for unit in [Unit::Second, Unit::Day] {
        for fault in [RepositoryFault::ExclusiveBounds, RepositoryFault::FractionalDatestamps] {
            let case = Case::of(many().unit(unit).latency(SLOW)).await;
            case.repository.set_fault(fault.clone());
            let run = case.sync(&[]).exits(0);
            assert_eq!((run.count("stored"), run.count("gaps")), (2_000, 0), "{unit:?} {fault:?} {run}");
            assert_eq!(case.repository.requests().max_open, 3, "{unit:?} {fault:?}: it was split");
            case.is_whole();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_is_lost_between_halves_of_a_window_that_failed_however_their_bounds_are_read() {
    for (unit, seconds_apart) in [(Unit::Second, 1), (Unit::Day, 3_600)] {
        for bounds in [RepositoryFault::ExclusiveBounds, RepositoryFault::FractionalDatestamps] {
            for (failing, failed) in
                [(RepositoryFault::DeepPageFails(60, 500), 0), (RepositoryFault::FailingRecord(137, 500), 1)]
            {
                // Nothing but the records themselves tells how many there are.
                let spec = RepositorySpec::default().records(200).page_size(10).sizes(false);
                let case = Case::of(spec.unit(unit).seconds_apart(seconds_apart)).await;
                case.repository.set_fault(bounds.clone());
                case.repository.set_fault(failing.clone());
                let run = case.sync(&[]);
                let what = format!("{unit:?} {bounds:?} {failing:?} {run}");
                assert_eq!((run.count("stored"), run.count("failed")), (200 - failed, failed), "{what}");
                assert_eq!(run.count("gaps"), 0, "{what}");
                let told = run.json()["quirks"]["exclusive-bounds"].as_u64().unwrap_or(0);
                assert_eq!(told, u64::from(bounds == RepositoryFault::ExclusiveBounds), "{what}");
                let log = case.repository.requests();
                assert!(log.by_status[&500] <= 60, "{what} {:?}", log.by_status);
                case.repository.clear_faults();
                case.sync(&[]).exits(0);
                case.is_whole();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_meanwhile_is_asked_for_less_and_nothing_is_lost() {
    let case = Case::of(many()).await;
    let base = case.repository.base_url();
    case.repository.allow("ListRecords", 20);
    let mut sync = Process::start(&mut case.copy.command("sync", &[&base]));
    let mut enough = 20;
    for failure in [Failure::Status(503, 1), Failure::Status(500, 0), Failure::Cut(2_000)] {
        assert!(sync.until(|| case.requests("ListRecords") >= enough).await, "it ended too early");
        case.repository.fail_next(failure, 3);
        case.repository.allow("ListRecords", 20);
        enough += 20;
    }
    // Thirty more than those before the last failures.
    case.repository.allow("ListRecords", 50);
    enough += 30;
    assert!(sync.until(|| case.requests("ListRecords") >= enough).await, "it ended too early");
    // Each failure halved the number of windows.
    case.repository.reset_requests();
    case.repository.allow_all();
    assert_eq!(sync.end(), Some(0));
    let log = case.repository.requests();
    assert_eq!((log.impatient, log.max_open), (0, 1), "{log:?}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_and_dead_tokens_lose_no_record_of_any_window() {
    for unit in [Unit::Second, Unit::Day] {
        let case = Case::of(many().unit(unit)).await;
        let base = case.repository.base_url();
        case.repository.set_fault(RepositoryFault::Flaky(10));
        for kill in 0..4 {
            let asked = case.requests("ListRecords");
            // Few more, so that it cannot end before it is killed.
            case.repository.allow("ListRecords", 30 + 6);
            let sync = Process::start(&mut case.copy.command("sync", &[&base]));
            sync.kill_when(|| case.requests("ListRecords") >= asked + 30).await;
            case.repository.allow_all();
            if kill % 2 == 1 {
                case.repository.expire_tokens();
            }
            (0..20).for_each(|n| case.repository.update(n * 90 + kill));
            case.repository.delete(kill + 50);
        }
        for _ in 0..20 {
            if case.sync(&[]).exit == Some(0) {
                break;
            }
        }
        case.repository.clear_faults();
        let run = case.sync(&[]).exits(0);
        assert_eq!((run.count("failed"), run.count("gaps")), (0, 0), "{run}");
        case.is_whole();
        let scrub = case.copy.run("scrub", &["--compare-live", "50", "--json"]).exits(0).json();
        assert_eq!(scrub["live"]["same"], 50, "{scrub}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_moves_between_windows_while_they_are_read_is_not_absent() {
    let case = Case::in_step(many().latency(SLOW)).await;
    case.repository.advance(DAY);
    let base = case.repository.base_url();
    let mut command = case.copy.command("sync", &[&base, "--mode", "baseline", "--absent", "delete"]);
    let is_over = AtomicBool::new(false);
    let end = std::thread::scope(|threads| {
        let changing = threads.spawn(|| {
            // A list that changes while its windows are measured may stay one.
            while case.repository.requests().count("ListRecords") < 5 && !is_over.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(3));
            }
            // The newest of the old records first: their windows are read last.
            for index in (0..2_000).rev().step_by(7) {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                case.repository.update(index);
                std::thread::park_timeout(Duration::from_millis(3));
            }
        });
        let end = Process::start(&mut command).end();
        is_over.store(true, Ordering::SeqCst);
        changing.join().expect("no panic");
        end
    });
    assert_eq!(end, Some(0));
    let log = case.repository.requests();
    assert_eq!(log.max_open, 3, "it was split: {log:?}");
    let gone: Vec<_> = case.copy.ls().into_iter().filter(|(_, held)| held.state != "present").collect();
    assert!(gone.is_empty(), "{gone:?}");
}
