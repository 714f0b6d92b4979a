//! `oai-large`: whether memory stays flat where an OAI-PMH repository sends a page of nearly 1 GiB, or a list of
//! 10,000,000 headers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;
use simulated_source::{RepositorySpec, SimulatedRepository};

use super::measured;
use crate::check::{self, Check};
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::report::{Report, Round, Row};
use crate::source::Source;
use crate::thresher::{Audited, Outcome, Thresher, View};

/// Headers of the long list.
const HEADERS: u64 = 10_000_000;
/// Headers of one of its pages.
const HEADERS_A_PAGE: u64 = 10_000;
/// The large page has one record for so many headers of the list.
const HEADERS_A_RECORD: u64 = 25;
/// About the bytes of a record's metadata in the large page.
const METADATA_BYTES: usize = 2_048;

/// A running repository, and its base URL.
struct Repository {
    source: Source,
    base: String,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let headers = options.resources.unwrap_or(HEADERS);
    let records = (headers / HEADERS_A_RECORD).max(1);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "oai-large")?;
    let machine = Machine::here(work.path());
    let page = RepositorySpec::default().records(records).page_size(records).metadata_bytes(METADATA_BYTES);
    // All of them are deleted: a header is all that the repository has of them.
    let list = RepositorySpec::default()
        .records(headers)
        .deleted_every(1)
        .page_size(HEADERS_A_PAGE)
        .seconds_apart(1);

    let mut rows = vec![
        Row::new("one page with all records", records),
        Row::new("a list of headers alone", headers),
        Row::new("audit by a list of headers", headers),
    ];
    let mut versions = vec![thresher.version.clone()];
    for round in 1..=options.rounds.get() {
        let mut note = |row: usize, (command, round): (String, Round)| {
            let row: &mut Row = &mut rows[row];
            row.command = command;
            row.rounds.push(round);
        };
        let folder = work.make(&format!("round-{round}/page"))?;
        eprintln!("round {round}: a page of {records} records");
        note(0, Repository::start(page.clone())?.sync(&thresher, &folder, records)?);
        fs::remove_dir_all(&folder)?;

        let repository = Repository::start(list.clone())?;
        let folder = work.make(&format!("round-{round}/list"))?;
        eprintln!("round {round}: a list of {headers} headers, which is audited then");
        note(1, repository.sync(&thresher, &folder, 0)?);
        note(2, repository.audit(&thresher, &folder, headers / HEADERS_A_PAGE)?);
        fs::remove_dir_all(&folder)?;
        if round == 1 {
            versions.push(repository.source.version());
        }
    }
    let setup = BTreeMap::from([
        ("headers", json!(headers)),
        ("headers_a_page", json!(HEADERS_A_PAGE)),
        ("records_of_the_large_page", json!(records)),
        ("metadata_bytes_each", json!(METADATA_BYTES)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    Ok(Report { case: "oai-large", finished_at, machine, setup, versions, rows }.summed_up(&[]))
}

impl Repository {
    fn start(spec: RepositorySpec) -> anyhow::Result<Self> {
        // It has a runtime of its own for the time after the start.
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let server = runtime.block_on(SimulatedRepository::start(spec))?;
        let base = server.base_url();
        Ok(Self { source: Source::Repository(Box::new(server)), base })
    }

    /// A first harvest that stores so many records.
    fn sync(&self, thresher: &Thresher, folder: &Path, stored: u64) -> anyhow::Result<(String, Round)> {
        let command = thresher.sync(&self.base, View::None, None);
        let (ended, mut done) = measured(&command, folder, Some(&self.source))?;
        done.checks = check::synced(&Outcome::of(&ended)?, stored);
        done.checks.push(check::resident(ended.usage.peak_rss_bytes));
        Ok((command.shown(folder).replace(&self.base, "$BASE"), done))
    }

    /// An audit of what is held by a list of so many pages.
    fn audit(&self, thresher: &Thresher, folder: &Path, pages: u64) -> anyhow::Result<(String, Round)> {
        let command = thresher.audit(&self.base);
        let (ended, mut done) = measured(&command, folder, Some(&self.source))?;
        let audited = Audited::of(&ended)?;
        done.checks = vec![
            Check::holds("in sync", audited.in_sync),
            // The whole list once, and the usual requests beside it.
            Check::at_most("requests, as audit says", pages + 10, audited.requests),
            check::resident(ended.usage.peak_rss_bytes),
        ];
        Ok((command.shown(folder).replace(&self.base, "$BASE"), done))
    }
}
