//! `thresher audit` of an OAI-PMH repository: all headers are compared, and records only if the operator asks for it.

use std::collections::BTreeMap;

use simulated_source::{Changes, Deletions, RepositoryFault, RepositorySpec};

use crate::common::Run;
use crate::oai::Case;

const DAY: u32 = 86_400;

/// 95 records, 10 a page, an hour apart.
fn small() -> RepositorySpec {
    RepositorySpec::default().records(95).page_size(10).seconds_apart(3_600)
}

impl Case {
    fn audit(&self, options: &[&str]) -> Run {
        self.copy.run("audit", &[&[self.repository.base_url().as_str(), "--json"], options].concat())
    }
}

/// The kinds of the differences, by URI.
fn differences(run: &Run) -> BTreeMap<String, String> {
    let lines = run.json_lines();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    lines.iter().filter_map(|line| Some((text(&line["uri"])?, text(&line["difference"])?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_names_what_is_missing_outdated_and_gone_and_repairs_it() {
    let case = Case::in_step(small()).await;
    let run = case.audit(&[]).exits(0);
    let counts = ["held", "unverifiable", "matching", "differences", "listed"].map(|name| run.count(name));
    assert_eq!(counts, [95, 95, 0, 0, 95], "{run}");
    let log = case.repository.requests();
    let verbs = ["ListIdentifiers", "ListRecords", "GetRecord"].map(|verb| log.count(verb));
    assert_eq!(verbs, [10, 0, 0], "{log:?}");

    case.repository.advance(DAY);
    case.repository.delete(5);
    case.repository.delete(7);
    case.sync(&[]).exits(0);
    case.repository.advance(DAY);
    case.repository.delete(6);
    case.repository.forget_deletions();
    case.repository.update(3);
    case.repository.update(5);
    case.repository.delete(4);
    let created = case.repository.change(Changes { create: 1, update: 0, delete: 0 })[0];
    case.repository.reset_requests();
    let run = case.audit(&["--list"]).exits(1);
    let expected = [(3, "outdated"), (4, "extra"), (5, "missing"), (6, "extra"), (created, "missing")];
    let expected: BTreeMap<String, String> =
        expected.into_iter().map(|(index, kind)| (case.uri(index), kind.to_owned())).collect();
    assert_eq!(differences(&run), expected, "{run}");
    assert_eq!(case.requests("GetRecord"), 0);
    assert_eq!(case.copy.present().len(), 93, "nothing was changed");

    let run = case.audit(&["--repair", "--absent", "delete"]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (3, 2, 0), "{run}");
    assert_eq!((case.requests("GetRecord"), case.requests("ListRecords")), (3, 0));
    case.is_whole();
    case.audit(&[]).exits(0);
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0, "the repair is no news to the next run");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_concludes_nothing_from_a_list_that_is_not_whole() {
    let case = Case::in_step(small().deletions(Deletions::No)).await;
    for fault in [RepositoryFault::TokenMissing(2), RepositoryFault::VerbMissing("ListIdentifiers")] {
        case.repository.set_fault(fault.clone());
        let run = case.audit(&["--repair", "--absent", "delete"]).exits(1);
        assert_eq!((run.count("extra"), run.count("deleted")), (0, 0), "{fault:?} {run}");
        assert!(run.count("not_compared") > 0, "{fault:?} {run}");
        let remarks = run.json()["remarks"].to_string();
        assert!(remarks.contains("was not read to its end"), "{fault:?} {remarks}");
        case.repository.clear_faults();
        case.audit(&[]).exits(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_reads_on_where_a_server_fails_deep_in_a_list() {
    let case = Case::in_step(small()).await;
    case.repository.set_fault(RepositoryFault::DeepPageFails(30, 500));
    let run = case.audit(&[]).exits(0);
    assert_eq!((run.count("held"), run.count("unverifiable")), (95, 95), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_finds_records_that_changed_without_a_new_datestamp() {
    let case = Case::in_step(small()).await;
    case.repository.update_silently(8);
    case.audit(&[]).exits(0);
    let run = case.audit(&["--sample", "20"]);
    assert_eq!(case.requests("GetRecord"), 20, "{run}");
    let run = case.audit(&["--sample", "1000", "--list"]).exits(1);
    assert_eq!((run.count("matching"), run.count("unverifiable")), (94, 0), "{run}");
    assert_eq!(differences(&run), BTreeMap::from([(case.uri(8), "outdated".to_owned())]), "{run}");
    assert!(run.stdout.contains("same datestamp"), "{run}");
    let run = case.audit(&["--sample", "1000", "--repair"]).exits(0);
    assert_eq!(run.count("stored"), 1, "{run}");
    let run = case.audit(&["--sample", "1000"]).exits(0);
    assert_eq!(run.count("matching"), 95, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_reads_the_lists_that_were_harvested() {
    let case = Case::of(small()).await;
    case.sync(&["--set", "group:0", "--set", "group:1"]).exits(0);
    case.sync(&["--set", "group:0"]).exits(0);
    let run = case.audit(&[]).exits(0);
    let counts = ["held", "listed", "unverifiable", "not_compared"].map(|name| run.count(name));
    assert_eq!(counts, [48, 24, 24, 24], "what only the other set listed is not judged: {run}");
}
