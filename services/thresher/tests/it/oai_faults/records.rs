//! Records, deletions and sets.

use simulated_source::{Deletions, RepositoryFault as Fault};

use super::{DAY, bears, quirk, records_are_problems, small};
use crate::oai::Case;

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
    // It is shown as live too: its own answer decides.
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("deleted"), quirk(&run, "deleted-and-live")), (1, 1), "{run}");
    assert_eq!(case.requests("GetRecord"), 1);
    case.is_whole();

    // Without that answer nothing goes.
    let case = Case::in_step(small().sizes(false)).await;
    case.repository.set_fault(Fault::DeletedAndLive);
    case.repository.set_fault(Fault::VerbMissing("GetRecord"));
    case.repository.advance(2 * DAY);
    case.repository.delete(5);
    let run = case.sync(&[]).exits(1);
    assert_eq!(run.count("deleted"), 0, "{run}");
    assert!(!case.copy.cat(&case.uri(5)).is_empty(), "what is stored is served");
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains(&case.uri(5)), "{problems}");
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
    assert!(case.copy.explain(&case.uri(1)).contains("in no set"), "its membership has ended");
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
async fn bare_doi() {
    let case = bears(Fault::BareDoi, "bare-doi").await;
    let told = case.copy.explain(&case.uri(3));
    assert!(told.contains("cite-as https://doi.org/10."), "{told}");
}
