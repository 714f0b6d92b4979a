//! A repository of OAI-PMH as a Source: whole, incremental, and with the faults of the wild.

use crate::common::{Destination, Repository, Run};

/// A sync that repeats no failed request by itself.
#[track_caller]
fn sync(copy: &Destination, repository: &Repository, options: &[&str]) -> Run {
    let all = [&["--retries", "0", "--rediscover-after", "1h"], options].concat();
    copy.sync_with(&repository.url(), &all)
}

/// A repository with 95 records, and a copy in sync with it.
async fn in_step() -> (Repository, Destination) {
    let repository = Repository::start(95).await;
    let copy = Destination::directory();
    sync(&copy, &repository, &[]).exits(0);
    repository.take_requests("");
    (repository, copy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_harvested_by_its_pages_and_a_second_run_costs_what_changed() {
    let repository = Repository::start(95).await;
    let copy = Destination::directory();
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (95, 0), "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");
    let requests = repository.take_requests("");
    let lists = requests.iter().filter(|request| request.contains("ListRecords")).count();
    assert_eq!(lists, 10, "pages only: {requests:?}");
    assert!(!requests.iter().any(|request| request.contains("GetRecord")), "{requests:?}");
    assert_eq!(copy.present().len(), 95);
    let bytes = String::from_utf8(copy.cat(&repository.uri(7))).unwrap();
    assert!(bytes.starts_with("<?xml") && bytes.contains("<dc:title>Title 7</dc:title>"), "{bytes}");
    assert!(!bytes.contains("OAI-PMH>"), "the record, not the answer around it: {bytes}");

    repository.change(&[3, 40, 200], "New");
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (3, 0), "{run}");
    let requests = repository.take_requests("ListRecords");
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(requests[0].contains("from=") && !requests[0].contains("until="), "{requests:?}");
    assert!(String::from_utf8(copy.cat(&repository.uri(40))).unwrap().contains("New"));

    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("requests")), (0, 1), "nothing changed: {run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_request_names_the_repository() {
    let repository = Repository::start(5).await;
    let copy = Destination::directory();
    let url = format!("{}?verb=ListRecords&metadataPrefix=oai_dc", repository.url());
    let run = copy.sync_with(&url, &[]).exits(0);
    assert_eq!(run.count("stored"), 5, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_shows_what_the_repository_says_of_itself() {
    let repository = Repository::start(5).await;
    let copy = Destination::directory();
    let mut command = crate::common::thresher();
    let found = Run::of(command.args(["discover", &repository.url(), "--json"])).exits(0).json();
    assert_eq!(found["oai"]["name"], "A test");
    assert_eq!(found["oai"]["prefix"], "oai_dc");
    assert_eq!(found["oai"]["deletions"], "persistent");
    let mut command = crate::common::thresher();
    let text = Run::of(command.args(["discover", &repository.url()])).exits(0).stdout;
    assert!(text.contains("A test") && text.contains("deletions persistent"), "{text}");
    let run = sync(&copy, &repository, &["--metadata-prefix", "mets"]).exits(3);
    assert!(run.stderr.contains("mets") && run.stderr.contains("oai_dc"), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_shown_as_deleted_is_deleted_and_may_come_back() {
    let (repository, copy) = in_step().await;
    repository.delete(&[1, 2]);
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!(run.count("deleted"), 2, "{run}");
    assert_eq!(copy.present().len(), 93);
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!(run.count("deleted"), 0, "once: {run}");
    repository.change(&[1], "Again");
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!(run.count("stored"), 1, "{run}");
    assert_eq!(copy.state(&repository.uri(1)).as_deref(), Some("present"));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_vanish_are_deleted_after_a_second_list_of_all_identifiers() {
    let repository = Repository::start(95).await;
    repository.set(|state| state.deletions = "no");
    let copy = Destination::directory();
    sync(&copy, &repository, &[]).exits(0);
    repository.lose(&[10, 11]);
    let run = sync(&copy, &repository, &["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 2), "{run}");
    repository.change(&[20], "Later");
    let run = sync(&copy, &repository, &["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (2, 0), "{run}");
    assert_eq!(copy.present().len(), 93);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_records_that_vanish_wait_for_the_operator() {
    let repository = Repository::start(50).await;
    repository.set(|state| state.deletions = "transient");
    let copy = Destination::directory();
    sync(&copy, &repository, &[]).exits(0);
    repository.lose(&(0..20).collect::<Vec<_>>());
    let options = ["--mode", "baseline", "--absent", "delete"];
    sync(&copy, &repository, &options).exits(3);
    assert_eq!(copy.present().len(), 50);
    let run = sync(&copy, &repository, &[&options[..], &["--max-deletes", "100%"]].concat()).exits(0);
    assert_eq!(run.count("deleted"), 20, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires_begins_the_window_anew_and_loses_nothing() {
    let repository = Repository::start(95).await;
    repository.set(|state| state.expire_next = true);
    let copy = Destination::directory();
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (95, 0), "{run}");
    assert_eq!(repository.take_requests("ListRecords").len(), 12, "two more than there are pages");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_lead_in_a_circle_end_and_smaller_windows_bring_all_records() {
    let repository = Repository::start(30).await;
    repository.set(|state| (state.loops, state.counts) = (true, false));
    let copy = Destination::directory();
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (30, 0), "{run}");
    assert!(run.json()["quirks"]["token-loop"].as_u64() > Some(0), "{run}");
    let requests = repository.take_requests("ListRecords").len();
    assert!(requests < 100, "{requests}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_in_which_the_server_fails_is_halved_until_the_bad_record_is_alone() {
    let repository = Repository::start(95).await;
    repository.set(|state| state.fails_with = Some(37));
    let copy = Destination::directory();
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (95, 0, 0), "{run}");
    let gets = repository.take_requests("GetRecord");
    assert_eq!(gets.len(), 1, "only the bad one is asked for by itself: {gets:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_fails_every_way_is_the_one_problem_and_is_named() {
    let repository = Repository::start(95).await;
    repository.set(|state| (state.fails_with, state.is_hopeless) = (Some(37), true));
    let copy = Destination::directory();
    let run = sync(&copy, &repository, &[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (94, 1), "{run}");
    let problems = copy.run("problems", &[]).exits(1);
    assert!(problems.stdout.contains("oai%3At%3A37"), "{problems}");
    assert!(copy.explain(&repository.uri(36)).contains("ListRecords"), "it says which list brought it");
    repository.set(|state| (state.fails_with, state.is_hopeless) = (None, false));
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!(run.count("stored"), 1, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_no_list_tells_is_a_dated_gap_that_closes_later() {
    let repository = Repository::start(95).await;
    let (from, until) = (Repository::datestamp(50), Repository::datestamp(52));
    repository.set(|state| state.dark = Some((from, until)));
    let copy = Destination::directory();
    let run = sync(&copy, &repository, &[]).exits(1);
    assert_eq!(run.count("stored"), 92, "{run}");
    assert!(run.count("gaps") > 0, "{run}");
    let problems = copy.run("problems", &[]).exits(1);
    assert!(
        problems.stdout.contains("could not be read") && problems.stdout.contains("2026-01-03"),
        "{problems}"
    );
    repository.set(|state| state.dark = None);
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (3, 0), "{run}");
    assert_eq!(copy.present().len(), 95);
    copy.run("problems", &[]).exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_broken_in_lists_is_asked_for_alone_and_costs_no_other() {
    let repository = Repository::start(95).await;
    repository.set(|state| state.broken = Some(12));
    let copy = Destination::directory();
    let run = sync(&copy, &repository, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (95, 0), "{run}");
    assert_eq!(repository.take_requests("GetRecord").len(), 1);
    assert!(String::from_utf8(copy.cat(&repository.uri(12))).unwrap().contains("Title 12"));
}

#[tokio::test(flavor = "multi_thread")]
async fn report_and_ls_know_records() {
    let (repository, copy) = in_step().await;
    let report = copy.run("report", &["--json"]).exits(0).json();
    assert!(report.is_object());
    let held = copy.ls();
    assert_eq!(held[&repository.uri(0)].state, "present");
    let refused = copy.run("audit", &[&repository.url()]).exits(3);
    assert!(refused.stderr.contains("--mode baseline"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_shows_a_third_of_its_records_as_deleted_waits_for_the_operator() {
    let repository = Repository::start(330).await;
    repository.set(|state| state.page = 100);
    let copy = Destination::directory();
    sync(&copy, &repository, &[]).exits(0);
    repository.delete(&(0..110).collect::<Vec<_>>());
    let run = sync(&copy, &repository, &[]).exits(3);
    assert_eq!((run.count("deleted"), copy.present().len()), (0, 330), "{run}");
    repository.change(&[320], "Later");
    let run = sync(&copy, &repository, &["--max-deletes", "100%"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("stored")), (110, 1), "{run}");
}
