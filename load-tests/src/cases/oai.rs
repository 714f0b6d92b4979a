//! `oai`: records of an OAI-PMH repository, harvested by Thresher and by the clients that a user could pick instead.

mod checks;
mod entrant;
mod repository;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;

use self::entrant::{Entrant, PAGE_SIZES, Program, SCYTHE, SICKLE};
use self::repository::{METADATA_BYTES, Repository};
use super::{interleaved, measured};
use crate::check::{self, Check};
use crate::cli::OaiOptions;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::peers::{self, Peer};
use crate::place::Place;
use crate::read_pages::ReadRecords;
use crate::report::{Report, Round};
use crate::thresher::{Outcome, Thresher};

/// The promise of this case for Thresher.
const MOST_RESIDENT_BYTES: u64 = 200_000_000;

/// State that every run needs.
pub(super) struct Bench {
    thresher: Thresher,
    /// A Python that has both libraries.
    libraries: Peer,
    script: PathBuf,
    served: Vec<Served>,
    work: WorkFolder,
    keep: bool,
}

/// The repositories with pages of one size.
struct Served {
    page_size: u64,
    many: Repository,
    few: Repository,
    /// All answers of the small one, in files.
    pages: PathBuf,
}

/// Runs the case.
pub(crate) fn run(options: &OaiOptions) -> anyhow::Result<Report> {
    let (many, few) = (options.many(), options.few());
    let options = &options.common;
    let thresher = Thresher::get(options)?;
    let libraries = peers::oai_libraries()?;
    let work = WorkFolder::new(options, "oai")?;
    let machine = Machine::here(work.path());
    let mut served = Vec::new();
    for page_size in PAGE_SIZES {
        eprintln!("making repositories of {many} and of {few} records, {page_size} a page");
        let pages = work.make(&format!("pages-{page_size}"))?;
        let few = Repository::start(few, page_size)?;
        few.write_pages(&pages)?;
        served.push(Served { page_size, many: Repository::start(many, page_size)?, few, pages });
    }
    let script = work.path().join("harvest.py");
    fs::write(&script, include_str!("../../oai/harvest.py"))?;
    let server = served.first().map(|served| served.many.source.version());
    let versions = [thresher.version.clone(), libraries.version.clone()].into_iter().chain(server).collect();
    let bench = Bench { thresher, libraries, script, served, work, keep: options.keep };
    let mut rows = interleaved(
        &Entrant::ALL,
        |entrant| entrant.name,
        few,
        options,
        |entrant, round| bench.run(entrant, round),
    )?;
    for row in &mut rows {
        if Entrant::ALL.iter().any(|entrant| entrant.name == row.name && entrant.takes_many()) {
            row.resources = many;
        }
    }
    let setup = BTreeMap::from([
        ("records", json!(many)),
        ("records_as_files", json!(few)),
        ("metadata_bytes_each", json!(METADATA_BYTES)),
        ("page_sizes", json!(PAGE_SIZES)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback; the reader: files, held in memory by the kernel")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "oai", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[SICKLE[0], SICKLE[1], SCYTHE[0], SCYTHE[1]]))
}

impl Bench {
    /// One run of one entrant into a new directory, and the checks of its work.
    fn run(&self, entrant: Entrant, round: usize) -> anyhow::Result<(String, Round)> {
        let served = self.served.iter().find(|served| served.page_size == entrant.page_size);
        let served = served.context("no repository has pages of this size")?;
        let repository = if entrant.takes_many() { &served.many } else { &served.few };
        let folder = self.work.make(&format!("round-{round}/{}", entrant.folder()))?;
        let into = folder.join("into");
        let base = repository.base.as_str();
        let command = entrant.command(self, base, &served.pages)?;
        let before = repository.source.requests()?;
        let (ended, mut done) = measured(&command, &folder, Some(&repository.source))?;
        done.counted.insert("requests_seen_by_source".to_owned(), repository.source.requests()? - before);
        done.checks = match entrant.program {
            Program::Reader => {
                ended.succeeded()?;
                let read: ReadRecords = serde_json::from_str(&ended.output()?)?;
                vec![Check::holds("all records and their bytes were read", read == repository.sums())]
            }
            Program::Thresher | Program::ThresherFiles => {
                let records = repository.records.len() as u64;
                let mut checks = check::synced(&Outcome::of(&ended)?, records);
                let resident = ended.usage.peak_rss_bytes;
                checks.push(Check::at_most("peak resident bytes", MOST_RESIDENT_BYTES, resident));
                checks.extend(checks::harvest(&self.thresher, &Place::directory(&into), repository)?);
                if entrant.program == Program::ThresherFiles {
                    checks.push(checks::view(&into, repository)?);
                } else if !self.keep {
                    // A few large files, which would fill the disk after some rounds.
                    fs::remove_dir_all(&into)?;
                }
                checks
            }
            Program::Sickle | Program::Scythe => {
                ended.succeeded()?;
                checks::files(&into, repository)?
            }
        };
        let shown = command.shown(&folder).replace(base, "$BASE");
        Ok((shown.replace(&format!("{}/", self.work.path().display()), ""), done))
    }
}
