//! `large-files`: 64 resources of 64 MiB, harvested by Thresher; and by `curl` into files, which `sha256sum`
//! then reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::json;
use simulated_source::Expected;

use super::small_files::serving;
use super::{interleaved, measured};
use crate::check;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::peers::{self, Peer};
use crate::place::Place;
use crate::process::CommandLine;
use crate::ready::FullMemory;
use crate::report::{Report, Round};
use crate::source::Source;
use crate::thresher::{Outcome, Thresher, View};

const RESOURCES: u64 = 64;
const BYTES_EACH: u64 = 64 << 20;
/// The unit of the figures.
const MB: u64 = 1_000_000;
/// Concurrent requests, in every row.
const AT_ONCE: u16 = 16;
/// Resources whose bytes are read at the end.
const SAMPLE: usize = 3;
/// Input files of `curl` and of `sha256sum`.
const URLS: &str = "urls.txt";
const SUMS: &str = "sums.txt";
const FILES: &str = "files.txt";

/// The programs that harvest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Thresher(View),
    /// `curl`, and then one `sha256sum` that compares.
    Curl,
    /// `curl`, and then one `sha256sum` per processor, which prints digests.
    CurlAllCores,
}

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    curl: Peer,
    sha256sum: Peer,
    source: Source,
    expected: Vec<Expected>,
    work: WorkFolder,
    memory: FullMemory,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let curl = peers::curl()?;
    let sha256sum = peers::sha256sum()?;
    let work = WorkFolder::new(options, "large-files")?;
    let machine = Machine::here(work.path());
    eprintln!("writing {resources} resources of {BYTES_EACH} bytes");
    let (source, expected) = serving::start(options.source, &work, resources, BYTES_EACH)?;
    let versions =
        vec![thresher.version.clone(), curl.version.clone(), sha256sum.version.clone(), source.version()];
    let memory = FullMemory::below_target()?;
    let memory_before = memory.described();
    let bench = Bench { thresher, curl, sha256sum, source, expected, work, memory };
    let run = |way, round| bench.run(way, round);
    let megabytes = (resources * BYTES_EACH).div_ceil(MB);
    let rows = interleaved(&Way::ALL, Way::name, megabytes, options, run)?;
    let setup = BTreeMap::from([
        ("unit", json!("MB of content")),
        ("resources", json!(resources)),
        ("bytes_each", json!(BYTES_EACH)),
        ("declared", json!("sha-256, length, lastmod")),
        ("memory_before_each_run", json!(memory_before)),
        ("requests_at_a_time", json!(AT_ONCE)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "large-files", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[Way::Curl.name(), Way::CurlAllCores.name()]))
}

impl Way {
    /// All, in the order of the first round.
    const ALL: [Self; 4] =
        [Self::Thresher(View::Files), Self::Curl, Self::Thresher(View::None), Self::CurlAllCores];

    /// Its name in the report.
    fn name(self) -> &'static str {
        match self {
            Self::Thresher(View::Files) => "thresher, view files",
            Self::Thresher(View::None) => "thresher, view none",
            Self::Curl => "curl, then sha256sum",
            Self::CurlAllCores => "curl, then sha256sum on all cores",
        }
    }
}

impl Bench {
    /// One run into a new directory, and the checks of its work.
    fn run(&self, way: Way, round: usize) -> anyhow::Result<(String, Round)> {
        let name = format!("round-{round}-{}", way.name().replace(", ", "-").replace(' ', "-"));
        let folder = self.work.make(&name)?;
        let into = folder.join("into");
        self.memory.restore()?;
        let (command, done) = match way {
            Way::Thresher(view) => self.sync(view, &folder, &into)?,
            Way::Curl | Way::CurlAllCores => self.curl(way, &folder, &into)?,
        };
        // A few large files: deleting them takes little time, and the next run needs the room.
        fs::remove_dir_all(&into)?;
        Ok((command.replace(&self.source.base(), "$SOURCE"), done))
    }

    fn sync(&self, view: View, folder: &Path, into: &Path) -> anyhow::Result<(String, Round)> {
        let command = self.thresher.sync(&self.source.list(), view, Some(AT_ONCE));
        let (ended, mut done) = measured(&command, folder, Some(&self.source))?;
        done.checks = check::synced(&Outcome::of(&ended)?, self.expected.len() as u64);
        done.checks.push(check::resident(ended.usage.peak_rss_bytes));
        done.checks.extend(check::harvest(&self.thresher, &Place::directory(into), &self.expected, SAMPLE)?);
        if view == View::Files {
            done.checks.extend(check::view(into, &self.source.base(), &self.expected)?);
        }
        Ok((command.shown(folder), done))
    }

    /// Two commands, one after the other, count as one.
    fn curl(&self, way: Way, folder: &Path, into: &Path) -> anyhow::Result<(String, Round)> {
        let base = self.source.base();
        self.write_lists(folder, &base)?;
        let get = self.curl.command().args(["--parallel", "--parallel-max", &AT_ONCE.to_string()]);
        let get = get.args(["--silent", "--show-error", "--fail", "--create-dirs", "--config", URLS]);
        let digest = self.sha256sum.command();
        let digest = match way {
            Way::CurlAllCores => {
                let processes = std::thread::available_parallelism()?.to_string();
                digest.run_by("xargs", ["-a", FILES, "-P", &processes, "-n", "1"])
            }
            _ => digest.args(["--check", "--quiet", SUMS]),
        };
        let run = |command: &CommandLine| -> anyhow::Result<Round> {
            let (ended, round) = measured(command, folder, Some(&self.source))?;
            ended.succeeded()?;
            Ok(round)
        };
        let mut done = run(&get)?.and_then(&run(&digest)?);
        done.checks = check::files(into, &base, &self.expected)?;
        Ok((format!("{} && {}", get.shown(folder), digest.shown(folder)), done))
    }

    fn write_lists(&self, folder: &Path, base: &str) -> anyhow::Result<()> {
        let mut urls = String::new();
        let mut sums = String::new();
        let mut files = String::new();
        for Expected { uri, sha256, .. } in &self.expected {
            let path = uri.strip_prefix(base).unwrap_or(uri);
            writeln!(urls, "url = \"{uri}\"\noutput = \"into{path}\"")?;
            writeln!(sums, "{sha256}  into{path}")?;
            writeln!(files, "into{path}")?;
        }
        for (name, text) in [(URLS, urls), (SUMS, sums), (FILES, files)] {
            fs::write(folder.join(name), text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut names = Way::ALL.map(Way::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Way::ALL.len());
    }
}
