//! The files that records of OAI-PMH name: `--follow-links content`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use simulated_source::{Deletions, FileFormat, RepositoryFault, RepositorySpec, SimulatedRepository, Size};

use crate::common::{Destination, Process, Run, thresher};

const DAY: u32 = 86_400;
const FILES: u64 = 2;

/// A repository of records with files, and a place for its copy.
struct Case {
    repository: SimulatedRepository,
    copy: Destination,
    /// The format that is harvested.
    prefix: &'static str,
}

/// Records with two files each, ten minutes apart: all of them within the overlap of a day.
fn with_files(records: u64) -> RepositorySpec {
    RepositorySpec::default().records(records).page_size(40).files(FILES).file_size(Size::Range(200, 2_000))
}

impl Case {
    async fn of(spec: RepositorySpec) -> Self {
        let repository = SimulatedRepository::start(spec).await.expect("a free port on loopback");
        Self { repository, copy: Destination::directory(), prefix: "mets" }
    }

    /// A repository, and a copy in sync with it. Requests are counted from now on.
    async fn in_step(spec: RepositorySpec) -> Self {
        let case = Self::of(spec).await;
        case.sync(&[]).exits(0);
        case.repository.reset_requests();
        case
    }

    #[track_caller]
    fn sync(&self, options: &[&str]) -> Run {
        let base = self.repository.base_url();
        let always = ["--retries", "0", "--follow-links", "content"];
        self.copy.sync_with(&base, &[&always, options].concat())
    }

    /// The URI of a record.
    fn record(&self, index: u64) -> String {
        let identifier = self.repository.identifier(index).replace(':', "%3A");
        let base = self.repository.base_url();
        format!("{base}?verb=GetRecord&identifier={identifier}&metadataPrefix={}", self.prefix)
    }

    fn file(&self, index: u64, number: u64) -> String {
        self.repository.file_url(index, number)
    }

    /// How many requests came whose path or verb begins so, since the log was cleared.
    fn requests(&self, beginning: &str) -> u64 {
        let log = self.repository.requests().by_verb;
        log.iter().filter(|(what, _)| what.starts_with(beginning)).map(|(_, times)| times).sum()
    }

    /// Checks that the copy has the live records and their files, byte for byte, and nothing else.
    #[track_caller]
    fn is_whole(&self) {
        let mut truth = BTreeMap::new();
        for one in self.repository.expected().iter().filter(|one| !one.deleted) {
            let metadata = (0..FILES).map(|number| (one.index, number));
            for (index, number) in metadata {
                let bytes = self.repository.file(index, number);
                let sha256 = fixity::Sha256::of(&bytes).to_string();
                truth.insert(self.file(index, number), (bytes.len() as u64, sha256));
            }
        }
        let records = self.repository.expected().iter().filter(|one| !one.deleted).count();
        let (of_records, of_files): (BTreeMap<_, _>, _) =
            self.copy.present().into_iter().partition(|(uri, _)| uri.contains("verb=GetRecord"));
        assert_eq!(of_records.len(), records);
        assert_eq!(of_files, truth);
    }

    /// The line of a resource in `ls --json`.
    #[track_caller]
    fn line(&self, uri: &str) -> Value {
        let lines = self.copy.listed();
        lines.into_iter().find(|line| line["uri"] == uri).unwrap_or_else(|| panic!("{uri} is not listed"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_items_of_two_files_are_held_judged_by_digest_and_length_and_no_page_is_asked_for() {
    let case = Case::of(with_files(100)).await;
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("listed"), run.count("linked"), run.count("stored")), (100, 200, 300), "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");
    assert_eq!((case.requests("/files"), case.requests("/item")), (200, 0));
    case.is_whole();
    for (index, number) in [(0, 0), (57, 1)] {
        let told = case.copy.explain(&case.file(index, number));
        let from = format!("linked from {} as item", case.record(index));
        for text in ["its digest matches the declared one", "no list names it", "md5:", &from] {
            assert!(told.contains(text), "{text}: {told}");
        }
    }
    let told = case.copy.explain(&case.record(0));
    for text in [
        format!("item {}", case.file(0, 1)),
        format!("file {} (mets: fileGrp with USE ORIGINAL)", case.file(0, 1)),
    ] {
        assert!(told.contains(&text), "{text}: {told}");
    }
    let links = case.line(&case.record(0))["links"].clone();
    let items = links.as_array().unwrap().iter().filter(|link| link["rel"] == "item").count();
    assert_eq!(items, 2, "{links}");

    // Each answer has its own time in its METS, which is no change.
    case.repository.reset_requests();
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("unchanged")), (0, 300), "{run}");
    assert_eq!(case.requests("/files"), 0);
    for _ in 0..3 {
        case.repository.advance(60);
        assert_eq!(case.sync(&["--mode", "baseline"]).exits(0).count("stored"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_that_names_files_leads_to_them() {
    let formats = [FileFormat::OaiDc, FileFormat::Xoai, FileFormat::OaiOpenaire];
    for format in formats {
        let mut case = Case::of(with_files(10).file_formats(formats.to_vec())).await;
        case.prefix = format.prefix();
        let options = ["--metadata-prefix", format.prefix()];
        let run = case.sync(&options).exits(0);
        assert_eq!((run.count("stored"), run.count("linked")), (30, 20), "{format:?} {run}");
        assert_eq!(case.requests("/item"), 0, "{format:?}");
        case.is_whole();
        let digest = case.copy.explain(&case.file(0, 0)).contains("matches the declared one");
        assert_eq!(digest, format == FileFormat::Xoai, "{format:?}");
        case.repository.reset_requests();
        let run = case.sync(&options).exits(0);
        assert_eq!((run.count("stored"), case.requests("/files")), (0, 0), "{format:?} {run}");
        // A record that changed has its files looked at, unless it says that they are the same.
        case.repository.advance(2 * DAY);
        case.repository.update(3);
        let run = case.sync(&options).exits(0);
        let asked = if format == FileFormat::Xoai { 0 } else { 2 };
        assert_eq!((run.count("stored"), case.requests("/files")), (1, asked), "{format:?} {run}");
        case.is_whole();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_landing_page_is_kept_as_a_link_and_is_never_the_file() {
    let mut case = Case::of(with_files(10)).await;
    case.prefix = "oai_dc";
    let run = case.sync(&["--metadata-prefix", "oai_dc"]).exits(0);
    assert_eq!((run.count("stored"), run.count("linked"), case.requests("/item")), (10, 0, 0), "{run}");
    let links = case.line(&case.record(3))["links"].clone();
    let page = links.as_array().unwrap().iter().find(|link| link["rel"] == "describes").unwrap();
    assert!(page["href"].as_str().unwrap().ends_with("/item/3"), "{links}");
    assert!(case.copy.explain(&case.record(3)).contains("(dc: identifier)"));

    let base = case.repository.base_url();
    let found = Run::of(thresher().args(["discover", &base])).exits(0).stdout;
    assert!(found.contains("oai_dc (landing pages), mets (files with digests); harvested: mets"), "{found}");
    let into = Destination::directory().into;
    let plan = Run::of(thresher().args(["plan", &base, "--into", &into])).exits(0).stdout;
    assert!(plan.contains("mets (files with digests)"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_refreshed_and_deleted_with_their_record() {
    let case = Case::in_step(with_files(40)).await;
    case.repository.advance(2 * DAY);
    case.repository.delete(3);
    case.repository.update_file(7, 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("deleted"), run.count("stored")), (3, 2), "{run}");
    assert_eq!(case.requests("/files"), 1, "the file that has another digest");
    for uri in [case.record(3), case.file(3, 0), case.file(3, 1)] {
        assert_eq!(case.copy.state(&uri).as_deref(), Some("deleted"), "{uri}");
        assert!(case.copy.file(&uri).is_none(), "{uri}");
    }
    case.is_whole();
    // It comes back with its record.
    case.repository.update(3);
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 3, "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_its_record_names_no_more_is_deleted_when_a_list_confirms_it() {
    let case = Case::in_step(with_files(40)).await;
    case.repository.advance(2 * DAY);
    case.repository.remove_file(5, 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("absent"), run.count("deleted")), (1, 1, 0), "{run}");
    assert_eq!(case.copy.state(&case.file(5, 1)).as_deref(), Some("present"));
    // The set waits for its lists: the next run that reads them settles it.
    case.repository.advance(DAY);
    let run = case.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("stored")), (1, 0), "{run}");
    assert_eq!(case.copy.state(&case.file(5, 1)).as_deref(), Some("deleted"));
    assert_eq!(case.copy.state(&case.file(5, 0)).as_deref(), Some("present"));
    assert_eq!(case.copy.present().len(), 119);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_served_is_a_problem_until_it_is() {
    let case = Case::of(with_files(40)).await;
    case.repository.lose_file(6, 0);
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (119, 1), "{run}");
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains(&case.file(6, 0)), "{problems}");
    case.sync(&[]).exits(1);
    case.repository.advance(DAY);
    case.repository.remove_file(6, 0);
    // The record names it no more, and nothing is stored of it.
    let run = case.sync(&["--mode", "baseline"]);
    assert_eq!(case.copy.present().len(), 119, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_identifiers_do_not_make_files_absent() {
    let case = Case::of(with_files(400).latency(Duration::from_millis(20))).await;
    case.repository.set_fault(RepositoryFault::OffsetTokens);
    let base = case.repository.base_url();
    let options = [&base, "--retries", "0", "--follow-links", "content"];
    case.repository.allow("ListRecords", 4);
    let mut sync = Process::start(&mut case.copy.command("sync", &options));
    assert!(sync.until(|| case.requests("ListRecords") >= 4).await, "it ended too early");
    // They move to the end of the list. Offsets skip others, so the next run lists all identifiers.
    (10..15).for_each(|index| case.repository.update(index));
    case.repository.allow_all();
    assert_eq!(sync.end(), Some(0));
    case.repository.reset_requests();
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("absent"), run.count("deleted")), (0, 0), "{run}");
    assert!(case.requests("ListIdentifiers") > 0, "{:?}", case.repository.requests().by_verb);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_vanishes_takes_its_files_with_it() {
    let case = Case::in_step(with_files(40).deletions(Deletions::No)).await;
    case.repository.delete(3);
    // It keeps them until a second list omits it.
    for expected in [(3, 0), (0, 3)] {
        case.repository.advance(DAY);
        let run = case.sync(&["--mode", "baseline"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), expected, "{run}");
    }
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_asked_for_by_itself_leads_to_its_files_too() {
    let case = Case::of(with_files(40)).await;
    case.repository.set_fault(RepositoryFault::FailingRecord(7, 500));
    let run = case.sync(&[]).exits(1);
    assert_eq!(run.count("stored"), 39 * 3, "{run}");
    case.repository.clear_faults();
    let run = case.sync(&[]).exits(0);
    assert_eq!(run.count("stored"), 3, "{run}");
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_beyond_the_limit_of_a_record_are_a_problem_of_that_record() {
    let case = Case::of(with_files(4).files(25)).await;
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (4 * 21, 4), "{run}");
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains("limit-links") && problems.contains(&case.record(2)), "{problems}");
    let run = case.sync(&["--follow-max", "30"]).exits(0);
    assert_eq!(run.count("stored"), 4 * 5, "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_records_gets_their_files_when_links_are_followed_later() {
    let case = Case::of(with_files(40)).await;
    let base = case.repository.base_url();
    case.copy.sync_with(&base, &["--retries", "0"]).exits(0);
    assert_eq!(case.copy.present().len(), 40);
    case.repository.advance(30 * DAY);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("linked")), (80, 80), "{run}");
    case.is_whole();
    // Followed no more, they stay.
    case.copy.sync_with(&base, &["--retries", "0", "--mode", "baseline"]).exits(0);
    case.is_whole();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_harvest_of_files_that_is_killed_loses_none() {
    let case = Case::of(with_files(200).latency(Duration::from_millis(3))).await;
    let base = case.repository.base_url();
    let words = [base.as_str(), "--retries", "0", "--follow-links", "content"];
    for files in [60, 200] {
        // Few more, so that it cannot end before it is killed.
        case.repository.allow("/files", files + 10 - case.requests("/files"));
        let sync = Process::start(&mut case.copy.command("sync", &words));
        sync.kill_when(|| case.requests("/files") >= files).await;
        case.repository.allow_all();
    }
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("failed"), run.count("gaps")), (0, 0), "{run}");
    case.is_whole();
    assert!(case.requests("/files") < 600, "{}", case.requests("/files"));
    case.copy.run("scrub", &[]).exits(0);
}
