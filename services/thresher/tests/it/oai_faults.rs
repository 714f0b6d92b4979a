//! A test for each fault of repositories in the wild, named after its quirk. What only a reader of one answer sees, such
//! as odd dates, has its test in `libs/oaipmh` too.

mod bytes;
mod lists;
mod records;
mod times;
mod tokens;

use simulated_source::{RepositoryFault as Fault, RepositorySpec};

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
async fn bears(fault: Fault, name: &str) -> Case {
    let (case, runs) = bears_in(small(), fault.clone()).await;
    assert!(runs.iter().any(|run| quirk(run, name) > 0), "{name} is not counted: {}", runs[0]);
    case
}

/// The same, and a later list of all records costs no request more than its pages.
async fn remembers(fault: Fault, name: &str) {
    let case = bears(fault, name).await;
    case.repository.reset_requests();
    case.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!(case.requests("ListRecords"), 10, "{name} is not remembered");
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
    case.repository.reset_requests();
    assert!(quirk(&case.sync(&[]).exits(0), name) > 0, "{fault:?}");
    assert_eq!(case.requests("ListRecords"), 1, "{fault:?}: no window is split");
    assert_eq!(case.copy.present().len(), 95);
}
