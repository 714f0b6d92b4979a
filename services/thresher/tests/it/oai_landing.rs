//! Files that only the landing pages of records name: `--follow-links landing-page` (docs/adr/0084).

mod odd;

use std::collections::BTreeMap;
use std::time::Duration;

use simulated_source::{LandingFault, RepositoryFault, RepositorySpec, SimulatedRepository, Size};

use crate::common::{Destination, Process, Run, thresher};

const DAY: u32 = 86_400;
const FILES: u64 = 2;
/// Dublin Core of the simulation names the landing page of a record, and no file.
const ALWAYS: [&str; 6] =
    ["--retries", "0", "--metadata-prefix", "oai_dc", "--follow-links", "content,landing-page"];

struct Case {
    repository: SimulatedRepository,
    copy: Destination,
}

/// Records with two files each, all of them within the overlap of a day.
fn paged(records: u64) -> RepositorySpec {
    RepositorySpec::default().records(records).page_size(10).files(FILES).file_size(Size::Range(200, 2_000))
}

impl Case {
    async fn of(spec: RepositorySpec) -> Self {
        let repository = SimulatedRepository::start(spec).await.expect("a free port on loopback");
        Self { repository, copy: Destination::directory() }
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
        self.copy.sync_with(&self.repository.base_url(), &[&ALWAYS, options].concat())
    }

    fn record(&self, index: u64) -> String {
        let identifier = self.repository.identifier(index).replace(':', "%3A");
        format!("{}?verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc", self.repository.base_url())
    }

    fn page(&self, index: u64) -> String {
        format!("{}/item/{index}", self.repository.url())
    }

    /// How many requests came whose path begins so, since the log was cleared.
    fn requests(&self, beginning: &str) -> u64 {
        let log = self.repository.requests().by_verb;
        log.iter().filter(|(what, _)| what.starts_with(beginning)).map(|(_, times)| times).sum()
    }

    /// Checks that the copy has the live records and their files, byte for byte, and nothing else.
    #[track_caller]
    fn is_whole(&self) {
        let live: Vec<u64> =
            self.repository.expected().iter().filter(|one| !one.deleted).map(|one| one.index).collect();
        let files = live.iter().flat_map(|index| (0..FILES).map(|number| (*index, number)));
        let truth: BTreeMap<_, _> = files
            .map(|(index, number)| {
                let bytes = self.repository.file(index, number);
                let url = self.repository.file_url(index, number);
                (url, (bytes.len() as u64, fixity::Sha256::of(&bytes).to_string()))
            })
            .collect();
        let (of_records, of_files): (BTreeMap<_, _>, _) =
            self.copy.present().into_iter().partition(|(uri, _)| uri.contains("verb=GetRecord"));
        assert_eq!(of_records.len(), live.len());
        assert_eq!(of_files, truth);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_landing_pages_are_held_and_each_page_is_asked_once() {
    let case = Case::of(paged(20)).await;
    let base = case.repository.base_url();
    let into = &case.copy.into;
    let plan = Run::of(thresher().args(["plan", &base, "--into", into]).args(&ALWAYS[2..])).exits(0).stdout;
    assert!(plan.contains("at most 20 requests more"), "{plan}");
    case.repository.reset_requests();

    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("listed"), run.count("linked"), run.count("stored")), (20, 40, 60), "{run}");
    assert_eq!((case.requests("/item"), case.requests("/files")), (20, 40));
    case.is_whole();
    let told = case.copy.explain(&case.record(3));
    for text in [
        format!("{}: names 2 files, read ", case.page(3)),
        format!("item {}", case.repository.file_url(3, 1)),
        format!("landing-page {}", case.page(3)),
    ] {
        assert!(told.contains(&text), "{text}: {told}");
    }
    let told = case.copy.explain(&case.repository.file_url(3, 1));
    assert!(told.contains(&format!("linked from {} as item", case.record(3))), "{told}");

    // Lists of changes, of all records and of identifiers have nothing new, so no page is asked.
    case.repository.reset_requests();
    case.repository.advance(60);
    for mode in [&[][..], &["--mode", "baseline"]] {
        let run = case.sync(mode).exits(0);
        assert_eq!((run.count("stored"), run.count("absent"), run.count("deleted")), (0, 0, 0), "{run}");
    }
    assert_eq!((case.requests("/item"), case.requests("/files")), (0, 0));
    // Asked no more, and for no link at all, what is stored stays; and asked again, it costs no page.
    let follow_none = ["--retries", "0", "--metadata-prefix", "oai_dc"];
    for options in [&[&follow_none[..], &["--follow-links", "content"]].concat(), &follow_none.to_vec()] {
        case.copy.sync_with(&base, options).exits(0);
        case.is_whole();
    }
    case.sync(&[]).exits(0);
    case.is_whole();
    assert_eq!(case.requests("/item"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_changed_has_its_page_asked_again_and_takes_its_files_with_it() {
    let case = Case::in_step(paged(20)).await;
    case.repository.advance(2 * DAY);
    case.repository.update(3);
    case.repository.update_file(5, 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), case.requests("/item")), (3, 2), "{run}");
    assert_eq!(case.requests("/files"), 4, "the files of both");
    case.is_whole();

    case.repository.advance(2 * DAY);
    case.repository.delete(7);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("deleted"), case.requests("/item")), (3, 2), "{run}");
    case.is_whole();

    // A file that its page names no more is gone when a list confirms it.
    case.repository.advance(2 * DAY);
    case.repository.remove_file(9, 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("absent"), run.count("deleted")), (1, 0), "{run}");
    case.repository.advance(DAY);
    let run = case.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("stored")), (1, 0), "{run}");
    assert_eq!(case.copy.state(&case.repository.file_url(9, 1)).as_deref(), Some("deleted"));
    assert_eq!(case.copy.present().len(), 19 * 3 - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_harvest_of_landing_pages_that_is_killed_asks_no_settled_page_twice() {
    let case = Case::of(paged(60).latency(Duration::from_millis(8))).await;
    let base = case.repository.base_url();
    let words = [&[base.as_str()], &ALWAYS[..]].concat();
    for pages in [10, 30, 50] {
        // Few more, so that it cannot end before it is killed.
        case.repository.allow("/item", pages + 6 - case.requests("/item"));
        let sync = Process::start(&mut case.copy.command("sync", &words));
        sync.kill_when(|| case.requests("/item") >= pages).await;
        case.repository.allow_all();
    }
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("failed"), run.count("gaps")), (0, 0), "{run}");
    case.is_whole();
    // Four are open at a time, and what came just before a kill may not be durable.
    let asked = case.requests("/item");
    assert!((60..=60 + 3 * 20).contains(&asked), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_cannot_be_read_is_a_problem_until_it_can() {
    for status in [401, 403, 404, 500] {
        let case = Case::of(paged(12)).await;
        case.repository.set_fault(RepositoryFault::Landing(LandingFault::Status(status), Some(3)));
        let run = case.sync(&[]).exits(1);
        assert_eq!(run.count("stored"), 12 + 22, "{status} {run}");
        let problems = case.copy.run("problems", &[]).stdout;
        assert!(problems.contains(&case.page(3)), "{status} {problems}");
        assert!(case.copy.explain(&case.record(3)).contains(": not read; 0 files known of it"), "{status}");
        // Each run asks again, for that page only.
        case.repository.reset_requests();
        case.sync(&[]).exits(1);
        assert_eq!(case.requests("/item"), 1, "{status}");
        case.repository.clear_faults();
        let run = case.sync(&[]).exits(0);
        assert_eq!(run.count("stored"), 2, "{status} {run}");
        case.is_whole();
    }
}
