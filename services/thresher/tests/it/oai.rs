//! A repository of OAI-PMH as a Source: whole, incremental, and with the faults of the wild.

use std::collections::BTreeSet;
use std::time::Duration;

use catalog::Batch;
use jiff::{SignedDuration, Timestamp};
use simulated_source::{Changes, Deletions, RepositoryFault, RepositorySpec, SimulatedRepository};
use testkit::scripted::Reply;

use crate::common::{Destination, Inside, Process, Run, Site, thresher};

const DAY: u32 = 86_400;

/// A repository, and a place for its copy.
pub(crate) struct Case {
    pub(crate) repository: SimulatedRepository,
    pub(crate) copy: Destination,
}

impl Case {
    pub(crate) async fn of(spec: RepositorySpec) -> Self {
        let repository = SimulatedRepository::start(spec).await.expect("a free port on loopback");
        Self { repository, copy: Destination::directory() }
    }

    /// A repository, and a copy in sync with it. Requests are counted from now on.
    pub(crate) async fn in_step(spec: RepositorySpec) -> Self {
        let case = Self::of(spec).await;
        case.sync(&[]).exits(0);
        case.repository.reset_requests();
        case
    }

    /// A sync in which no failed request is repeated without a reason.
    #[track_caller]
    pub(crate) fn sync(&self, options: &[&str]) -> Run {
        self.copy.sync_with(&self.repository.base_url(), &[&["--retries", "0"], options].concat())
    }

    /// The URI of a record.
    pub(crate) fn uri(&self, index: u64) -> String {
        let identifier = self.repository.identifier(index).replace(':', "%3A");
        let base = self.repository.base_url();
        format!("{base}?verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc")
    }

    /// How many requests of a verb came since the log was cleared.
    pub(crate) fn requests(&self, verb: &str) -> u64 {
        self.repository.requests().count(verb)
    }

    /// Lets so many days pass since the identifiers of its lists were last compared with what is held.
    pub(crate) async fn compared_days_ago(&self, days: i64) {
        let inside = Inside::of(&self.copy, &self.repository.base_url()).await;
        let mut batch = Batch::new();
        for (id, mut set) in inside.catalog.sets().await.expect("a catalog") {
            let list = set.oai.as_mut().expect("a list of a repository");
            list.progress.swept_at = Some(Timestamp::now() - SignedDuration::from_hours(days * 24));
            batch.put_set(&id, &set);
        }
        inside.catalog.commit(batch).await.expect("a catalog");
        inside.close().await;
    }

    /// Checks that the copy has the records that the repository has, and no other.
    #[track_caller]
    pub(crate) fn is_whole(&self) {
        let expected: BTreeSet<String> = self
            .repository
            .expected()
            .iter()
            .filter(|one| !one.deleted)
            .map(|one| self.uri(one.index))
            .collect();
        let present: BTreeSet<String> = self.copy.present().into_keys().collect();
        assert_eq!(present, expected);
    }
}

/// 95 records, 10 a page, an hour apart.
fn small() -> RepositorySpec {
    RepositorySpec::default().records(95).page_size(10).seconds_apart(3_600)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_harvested_by_its_pages_and_a_second_run_costs_what_changed() {
    let case = Case::of(RepositorySpec::default().deleted_every(10).seconds_apart(100_000)).await;
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (900, 0), "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");
    assert_eq!(case.requests("ListRecords"), 10, "1,000 records of which 100 are deleted, 100 a page");
    assert_eq!(case.requests("GetRecord"), 0);
    case.is_whole();
    let gone = case.repository.expected().iter().find(|one| one.deleted).map(|one| case.uri(one.index));
    assert_ne!(case.copy.state(&gone.expect("a deleted one")).as_deref(), Some("present"));
    let bytes = String::from_utf8(case.copy.cat(&case.uri(7))).unwrap();
    assert!(bytes.starts_with("<?xml") && bytes.contains("oai_dc:dc"), "{bytes}");
    assert!(!bytes.contains("OAI-PMH>"), "the record, not the answer around it: {bytes}");

    case.repository.advance(2 * DAY);
    case.repository.change(Changes { create: 2, update: 3, delete: 1 });
    case.repository.reset_requests();
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (5, 1), "{run}");
    let log = case.repository.requests();
    assert_eq!(log.count("ListRecords"), 1, "{log:?}");
    let list = log.requests.iter().find(|request| request.contains("ListRecords")).expect("one");
    assert!(list.contains("from=") && !list.contains("until="), "{list}");
    case.is_whole();

    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("requests")), (0, 0, 1), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_one_set_are_harvested_and_a_pasted_request_names_the_repository() {
    let case = Case::of(small()).await;
    let url = format!("{}?verb=ListRecords&metadataPrefix=oai_dc&set=group:1", case.repository.base_url());
    let run = case.copy.sync_with(&url, &[]).exits(0);
    let of_set =
        case.repository.expected().iter().filter(|one| one.set.as_deref() == Some("group:1")).count();
    assert_eq!(run.count("stored"), of_set as u64, "{run}");
    let two = Case::of(small()).await;
    let run = two.sync(&["--set", "group:0", "--set", "group:1"]).exits(0);
    assert!(run.count("stored") > of_set as u64 && run.count("stored") < 95, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_of_a_home_page_and_a_catalog_of_interfaces_lead_to_the_repository() {
    let case = Case::of(small()).await;
    let home = case.repository.base_url().replace("/oai", "/");
    let run = case.copy.sync_with(&home, &["--retries", "0"]).exits(0);
    assert_eq!(run.count("stored"), 95, "{run}");
    case.is_whole();

    // The catalog of another site, whose repository runs elsewhere (FAIRiCat).
    let site = Site::start().await;
    let documentation = "http://www.openarchives.org/OAI/openarchivesprotocol.html";
    let catalog = format!(
        r#"{{"linkset": [{{"anchor": "{}", "service-doc": [{{"href": "{documentation}"}}]}}]}}"#,
        case.repository.base_url()
    );
    site.reply("/", Reply::ok("<title>x</title>").header("content-type", "text/html"));
    site.reply(
        "/.well-known/api-catalog",
        Reply::ok(catalog).header("content-type", "application/linkset+json"),
    );
    let copy = Destination::directory();
    let run = copy.sync(&site.uri("/")).exits(0);
    assert_eq!(run.count("stored"), 95, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_and_plan_show_what_the_repository_offers() {
    let case = Case::of(small()).await;
    let base = case.repository.base_url();
    let found = Run::of(thresher().args(["discover", &base, "--json"])).exits(0).json();
    assert_eq!(
        (&found["oai"]["prefix"], &found["oai"]["deletions"]),
        (&"oai_dc".into(), &"persistent".into())
    );
    let text = Run::of(thresher().args(["discover", &base])).exits(0).stdout;
    assert!(text.contains("OAI-PMH repository") && text.contains("group:1"), "{text}");
    let plan = Run::of(thresher().args(["plan", &base, "--json", "--into", &case.copy.into])).exits(0).json();
    assert_eq!(plan["strategies"][0]["listed"], 95, "{plan}");
    let run = case.sync(&["--metadata-prefix", "marc21"]).exits(3);
    assert!(run.stderr.contains("marc21") && run.stderr.contains("oai_dc"), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_shown_as_deleted_is_deleted_once_and_may_come_back() {
    let case = Case::in_step(small()).await;
    case.repository.advance(2 * DAY);
    case.repository.delete(1);
    case.repository.delete(2);
    assert_eq!(case.sync(&[]).exits(0).count("deleted"), 2);
    assert_eq!(case.sync(&[]).exits(0).count("deleted"), 0);
    case.repository.update(1);
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 1);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_vanish_are_deleted_after_a_second_full_list() {
    let case = Case::in_step(small().deletions(Deletions::No)).await;
    case.repository.advance(DAY);
    case.repository.delete(10);
    case.repository.delete(11);
    let run = case.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 2), "{run}");
    case.repository.advance(DAY);
    let run = case.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (2, 0), "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_records_that_vanish_or_are_shown_as_deleted_wait_for_the_operator() {
    for deletions in [Deletions::No, Deletions::Persistent] {
        let case = Case::in_step(small().records(330).page_size(100).deletions(deletions)).await;
        case.repository.advance(DAY);
        (0..110).for_each(|index| case.repository.delete(index));
        let options = match deletions {
            Deletions::Persistent => vec![],
            _ => vec!["--mode", "baseline", "--absent", "delete"],
        };
        case.sync(&options).exits(3);
        assert_eq!(case.copy.present().len(), 330, "{deletions:?}");
        case.repository.advance(2 * DAY);
        let run = case.sync(&[&options[..], &["--max-deletes", "100%"]].concat()).exits(0);
        assert_eq!(run.count("deleted"), 110, "{deletions:?} {run}");
        case.is_whole();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_die_at_once_or_lead_in_a_circle_cost_requests_and_no_record() {
    for fault in [RepositoryFault::ShortTokenLife(Duration::ZERO), RepositoryFault::TokenLoop(1)] {
        let case = Case::of(small().sizes(false)).await;
        case.repository.set_fault(fault.clone());
        let run = case.sync(&[]).exits(0);
        assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{fault:?} {run}");
        assert!(case.requests("ListRecords") < 400, "{fault:?}");
        case.is_whole();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_ends_too_early_is_read_again_and_told() {
    let case = Case::of(small()).await;
    case.repository.set_fault(RepositoryFault::TokenMissing(2));
    let run = case.sync(&[]).exits(1);
    assert_eq!((case.copy.present().len(), run.count("gaps")), (30, 1), "{run}");
    assert!(run.json()["quirks"]["short-list"].as_u64() > Some(0), "{run}");
    let problems = case.copy.run("problems", &[]);
    assert!(problems.stdout.contains("30 records came of 95"), "{problems}");
    case.repository.clear_faults();
    case.sync(&[]).exits(0);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_deep_in_a_list_is_asked_for_smaller_windows() {
    let case = Case::of(small()).await;
    case.repository.set_fault(RepositoryFault::DeepPageFails(20, 500));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (95, 0), "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_record_that_fails_every_way_is_the_one_problem_and_is_named() {
    let case = Case::of(small()).await;
    case.repository.set_fault(RepositoryFault::FailingRecord(37, 500));
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (94, 1, 0), "{run}");
    let statuses = case.repository.requests().by_status;
    assert!(statuses[&500] <= 60, "{statuses:?}");
    let problems = case.copy.run("problems", &[]);
    assert!(problems.stdout.contains(&case.uri(37)), "{problems}");
    assert!(case.copy.explain(&case.uri(36)).contains("ListRecords"), "it says which list brought it");
    case.repository.clear_faults();
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 1, "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_no_list_tells_is_a_dated_gap_that_closes_later() {
    let case = Case::of(small()).await;
    case.repository.set_fault(RepositoryFault::FailingRecord(37, 500));
    case.repository.set_fault(RepositoryFault::VerbMissing("ListIdentifiers"));
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.count("stored"), run.count("gaps")), (94, 1), "{run}");
    let problems = case.copy.run("problems", &[]);
    assert!(problems.stdout.contains("could not be read") && problems.stdout.contains("T"), "{problems}");
    case.sync(&[]).exits(1);
    case.repository.clear_faults();
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (1, 0), "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_broken_in_lists_cost_no_other() {
    let case = Case::of(small()).await;
    case.repository.set_fault(RepositoryFault::BrokenRecord(30));
    let run = case.sync(&[]);
    assert!(run.count("stored") >= 90, "{run}");
    assert_eq!(run.count("stored") + run.count("failed"), 95, "each is held or a problem: {run}");
    case.repository.clear_faults();
    case.sync(&[]).exits(0);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn granularity_errors_with_a_status_and_bare_tokens_are_borne() {
    for fault in [
        RepositoryFault::GranularityLie,
        RepositoryFault::ErrorStatus(422),
        RepositoryFault::UnchangedToken,
        RepositoryFault::TokenAfterEnd { error: false },
        RepositoryFault::EmptyPages(3),
        RepositoryFault::Prefixed,
        RepositoryFault::EnvelopeNamespaces,
        RepositoryFault::TrailingBytes,
        RepositoryFault::OtherBaseUrl("http://localhost/oai".to_owned()),
    ] {
        let case = Case::of(small()).await;
        case.repository.set_fault(fault.clone());
        let run = case.sync(&[]).exits(0);
        assert_eq!(run.count("stored"), 95, "{fault:?} {run}");
        case.repository.advance(2 * DAY);
        case.repository.update(5);
        let run = case.sync(&[]).exits(0);
        assert_eq!(run.count("stored"), 1, "{fault:?} {run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_enough_where_a_repository_takes_no_seconds() {
    let case = Case::in_step(small().unit(simulated_source::Unit::Day)).await;
    case.repository.advance(DAY);
    case.repository.update(3);
    case.sync(&[]).exits(0);
    case.repository.update(4);
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 1, "two changes on one day, and two runs: {run}");
    let log = case.repository.requests().requests;
    assert!(log.iter().all(|request| !request.contains("T00")), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_fail_at_random_lose_nothing_in_the_end() {
    let case = Case::of(RepositorySpec::default().records(400).page_size(20)).await;
    case.repository.set_fault(RepositoryFault::Flaky(100));
    for _ in 0..30 {
        if case.sync(&[]).exit == Some(0) {
            return case.is_whole();
        }
    }
    panic!("not in sync after 30 runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_and_ls_know_records() {
    let case = Case::in_step(small()).await;
    let card = case.copy.run("report", &["--json"]).exits(0).json();
    assert_eq!(card["source"]["protocol"], "oai-pmh", "{card}");
    let told = case.copy.run("report", &[]).exits(0);
    assert!(told.stdout.contains("Report on an OAI-PMH repository"), "{told}");
    assert_eq!(case.copy.ls()[&case.uri(0)].state, "present");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_is_chosen_no_more_keeps_no_record() {
    let case = Case::of(small().deletions(Deletions::No)).await;
    case.sync(&["--set", "group", "--set", "group:0"]).exits(0);
    assert_eq!(case.copy.present().len(), 95);
    case.repository.delete(0);
    for expected in [(1, 0), (0, 1)] {
        case.repository.advance(DAY);
        let run = case.sync(&["--set", "group:0", "--mode", "baseline"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), expected, "both sets listed it once: {run}");
    }
    assert_eq!(case.copy.state(&case.uri(0)).as_deref(), Some("deleted"));
    // What only the other set listed is not judged by this one.
    assert_eq!(case.copy.state(&case.uri(1)).as_deref(), Some("present"));
    // Chosen again, it counts again.
    case.repository.delete(1);
    for expected in [(1, 0), (0, 1)] {
        case.repository.advance(DAY);
        let run = case.sync(&["--set", "group", "--mode", "baseline"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), expected, "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gaps_of_a_set_that_is_chosen_no_more_are_no_problem() {
    let case = Case::of(small()).await;
    // It ends every list after the third page, and only that of all groups is longer.
    case.repository.set_fault(RepositoryFault::TokenMissing(2));
    let run = case.sync(&["--set", "group", "--set", "group:0"]).exits(1);
    assert_eq!(run.count("gaps"), 1, "{run}");
    let run = case.sync(&["--set", "group:0"]).exits(0);
    assert_eq!(run.json()["in_sync"], true, "{run}");
    case.repository.clear_faults();
    case.sync(&["--set", "group", "--set", "group:0"]).exits(0);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sets_of_a_record_are_kept_shown_and_searched() {
    let case = Case::in_step(small()).await;
    let header = |index: u64| {
        let uri = case.uri(index);
        let line = case.copy.listed().into_iter().find(|line| line["uri"] == uri.as_str());
        line.expect("it is listed")["oai"].clone()
    };
    assert_eq!(header(1)["identifier"], case.repository.identifier(1));
    assert_eq!(header(1)["sets"], serde_json::json!(["group:1"]));
    assert!(case.copy.explain(&case.uri(1)).contains("in group:1"));
    let set = format!("{}?verb=ListRecords&metadataPrefix=oai_dc&set=group%3A1", case.repository.base_url());
    let members = || case.copy.run("ls", &["--link", &format!("collection={set}")]).exits(0).stdout;
    assert_eq!(members().lines().count(), 24, "every fourth of 95 records, from the second on");

    // Its metadata stays the same.
    case.repository.advance(2 * DAY);
    case.repository.leave_set(1);
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 0, "{run}");
    assert_eq!(header(1)["sets"], serde_json::json!([]));
    assert!(!members().contains(&case.uri(1)), "it left the set");
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0);
    // A record that is asked for by itself has its sets too.
    case.repository.set_fault(RepositoryFault::FailingRecord(37, 500));
    case.repository.advance(DAY);
    case.repository.update(37);
    case.sync(&[]);
    case.repository.clear_faults();
    case.sync(&[]).exits(0);
    assert_eq!(header(37)["sets"], serde_json::json!(["group:1"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_harvest_that_is_killed_goes_on_with_its_token_and_loses_nothing() {
    let case = Case::of(RepositorySpec::default().page_size(20).latency(Duration::from_millis(5))).await;
    let base = case.repository.base_url();
    for pages in [10, 25, 40] {
        // Few more, so that it cannot end before it is killed.
        case.repository.allow("ListRecords", pages + 3 - case.requests("ListRecords"));
        let sync = Process::start(&mut case.copy.command("sync", &[&base]));
        sync.kill_when(|| case.requests("ListRecords") >= pages).await;
        case.repository.allow_all();
        case.repository.update(pages);
    }
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("failed"), 0, "{run}");
    let pages = case.requests("ListRecords");
    assert!(pages <= 50 + 3 * 3, "{pages} requests for 50 pages and three kills");
    // What changed while its page was behind is told by the next list.
    case.sync(&[]).exits(0);
    case.is_whole();
    let scrub = case.copy.run("scrub", &["--compare-live", "20", "--json"]).exits(0).json();
    assert_eq!(scrub["live"]["same"], 20, "{scrub}");
}
