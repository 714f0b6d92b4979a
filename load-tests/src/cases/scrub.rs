//! `scrub`: `thresher scrub` rereads a stored copy in a directory, and `sha256sum` its files, with one
//! processor and with all.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::small_files::serving;
use super::{interleaved, measured};
use crate::check::{self, Check};
use crate::cli::Options;
use crate::folder::{WorkFolder, bytes_below, files_below};
use crate::machine::Machine;
use crate::peers::{self, Peer};
use crate::place::Place;
use crate::process::CommandLine;
use crate::report::{Report, Round};
use crate::thresher::{Outcome, Thresher, View};

const RESOURCES: u64 = 20_000;
const BYTES_EACH: u64 = 100_000;
/// The unit of the figures.
const MB: u64 = 1_000_000;
/// The promise: memory is flat.
const MOST_RESIDENT_BYTES: u64 = 256_000_000;
/// Files for one `sha256sum`.
const FILES_AT_A_TIME: &str = "4";

/// The programs that read, and their number of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Scrub(Cores),
    Sha256sum(Cores),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cores {
    One,
    All,
}

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    sha256sum: Peer,
    into: PathBuf,
    files: Vec<PathBuf>,
    resources: u64,
    work: WorkFolder,
}

/// The last line of `scrub --json`, as far as it is checked here.
#[derive(Debug, Deserialize)]
struct Scrubbed {
    resources: u64,
    bytes: u64,
    damaged: u64,
    missing: u64,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let sha256sum = peers::sha256sum()?;
    let work = WorkFolder::new(options, "scrub")?;
    let machine = Machine::here(work.path());
    let (source, expected) = serving::start(options.source, &work, resources, BYTES_EACH)?;
    eprintln!("harvesting {resources} resources");
    let into = work.path().join("into");
    let place = Place::directory(&into);
    let command = thresher.sync_to(&place, &source.list(), View::None, None);
    let (ended, _) = measured(&command, &work.make("harvest")?, Some(&source))?;
    let mut checks = check::synced(&Outcome::of(&ended)?, resources);
    checks.extend(check::harvest(&thresher, &place, &expected, 3)?);
    let versions = vec![thresher.version.clone(), sha256sum.version.clone(), source.version()];
    drop(source);

    let folders = ["packs", "bitstreams"].map(|folder| into.join(".thresher").join(folder));
    let mut files = Vec::new();
    let mut bytes = 0;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        bytes += bytes_below(folder)?;
        for file in files_below(folder) {
            files.push(file?.path());
        }
    }
    let bench = Bench { thresher, sha256sum, into, files, resources, work };
    let run = |way, round| bench.run(way, round);
    let mut rows = interleaved(&Way::ALL, Way::name, bytes.div_ceil(MB), options, run)?;
    if let Some(first) = rows.first_mut().and_then(|row| row.rounds.first_mut()) {
        first.checks.extend(checks);
    }
    let setup = BTreeMap::from([
        ("unit", json!("MB of the files that hold it")),
        ("resources", json!(resources)),
        ("bytes_each", json!(BYTES_EACH)),
        ("files", json!(bench.files.len())),
        ("bytes_of_files", json!(bytes)),
        ("rounds", json!(options.rounds)),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "scrub", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[Way::Sha256sum(Cores::One).name(), Way::Sha256sum(Cores::All).name()]))
}

impl Way {
    /// All, in the order of the first round.
    const ALL: [Self; 4] = [
        Self::Scrub(Cores::One),
        Self::Sha256sum(Cores::One),
        Self::Scrub(Cores::All),
        Self::Sha256sum(Cores::All),
    ];

    /// Its name in the report.
    fn name(self) -> &'static str {
        match self {
            Self::Scrub(Cores::One) => "thresher scrub, one core",
            Self::Sha256sum(Cores::One) => "sha256sum, one core",
            Self::Scrub(Cores::All) => "thresher scrub, all cores",
            Self::Sha256sum(Cores::All) => "sha256sum, all cores",
        }
    }
}

impl Cores {
    fn run(self, command: CommandLine) -> CommandLine {
        match self {
            Self::One => command.run_by("taskset", ["-c", "0"]),
            Self::All => command,
        }
    }
}

impl Bench {
    fn run(&self, way: Way, round: usize) -> anyhow::Result<(String, Round)> {
        let folder =
            self.work.make(&format!("round-{round}-{}", way.name().replace(", ", "-").replace(' ', "-")))?;
        match way {
            Way::Scrub(cores) => {
                let command = self.thresher.measured().args(["scrub", "--into"]).arg(&self.into);
                let command = cores.run(command.arg("--json"));
                let (ended, mut done) = measured(&command, &folder, None)?;
                ended.succeeded()?;
                let output = ended.output()?;
                let found: Scrubbed = serde_json::from_str(output.lines().last().unwrap_or_default())?;
                done.checks = vec![
                    Check::equal("resources that were read", self.resources, found.resources),
                    Check::equal("their bytes", self.resources * BYTES_EACH, found.bytes),
                    Check::equal("damaged or missing", 0, found.damaged + found.missing),
                    Check::at_most("peak resident bytes", MOST_RESIDENT_BYTES, ended.usage.peak_rss_bytes),
                ];
                Ok((command.shown(self.work.path()), done))
            }
            Way::Sha256sum(cores) => {
                let processes = match cores {
                    Cores::One => "1".to_owned(),
                    Cores::All => std::thread::available_parallelism()?.to_string(),
                };
                let list = folder.join("files");
                let names: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
                std::fs::write(&list, names.join("\n"))?;
                let each = ["-d", "\\n", "-P", &processes, "-n", FILES_AT_A_TIME, "-a"].map(OsStr::new);
                let command = self.sha256sum.command();
                let command = cores.run(command.run_by("xargs", each.into_iter().chain([list.as_os_str()])));
                let (ended, mut done) = measured(&command, &folder, None)?;
                ended.succeeded()?;
                let lines = ended.output()?.lines().count() as u64;
                done.checks = vec![Check::equal("files that were read", self.files.len() as u64, lines)];
                Ok((command.shown(self.work.path()), done))
            }
        }
    }
}
