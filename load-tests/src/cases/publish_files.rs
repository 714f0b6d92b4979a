//! `publish-files`: 100,000 files in a directory become a Source, and again after 1 % of them changed, by a command and
//! by a server; and `resync-build` lists the same files.

mod watched;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::json;

use super::measured;
use crate::check::Check;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::peers::{self, Peer};
use crate::process::{CommandLine, Ended};
use crate::report::{Report, Round, Row};
use crate::thresher::Thresher;

const FILES: u64 = 100_000;
const BYTES_EACH: usize = 2_048;
/// Files of a folder.
const TOGETHER: u64 = 500;
/// One file in so many changes.
const ONE_IN: u64 = 100;
/// The promise: memory is flat.
const MOST_RESIDENT_BYTES: u64 = 100_000_000;
const BASE: &str = "http://files.example/";
const RESYNC: &str = "resync-build";
const FIRST: &str = "thresher publish, first";
const CHANGED: &str = "thresher publish, 1 % changed";
const IDLE: &str = "thresher publish, unchanged";
const WATCHED: &str = "thresher publish --listen, 1 % changed";
/// The longest times, in thousandths of the time of `resync-build`, for as many files as by default.
const MOST_PER_MILLE: [(&str, u64); 3] = [(FIRST, 500), (CHANGED, 50), (WATCHED, 50)];

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    resync: Peer,
    files: PathBuf,
    count: u64,
    work: WorkFolder,
}

/// The last line of `publish --json`, as far as it is checked here.
#[derive(Debug, Deserialize)]
struct Published {
    resources: u64,
    changes: u64,
    scan: Scan,
}

#[derive(Debug, Deserialize)]
struct Scan {
    files: u64,
    read: u64,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let count = options.resources.unwrap_or(FILES);
    let thresher = Thresher::get(options)?;
    let resync = peers::resync_build()?;
    let work = WorkFolder::new(options, "publish-files")?;
    let machine = Machine::here(work.path());
    let files = work.make("files")?;
    eprintln!("writing {count} files");
    for number in 0..count {
        write(&files, number, 0)?;
    }
    let versions = vec![thresher.version.clone(), resync.version.clone()];
    let bench = Bench { thresher, resync, files, count, work };
    let mut rows: Vec<Row> = [RESYNC, FIRST, CHANGED, IDLE, WATCHED].map(|name| Row::new(name, count)).into();
    for round in 1..=options.rounds.get() {
        eprintln!("round {round}");
        let done = bench.round(u32::try_from(round)?)?;
        let resync_seconds = done.first().map_or(f64::NAN, |(_, done)| done.usage.seconds);
        for (row, (command, mut done)) in rows.iter_mut().zip(done) {
            let most = MOST_PER_MILLE.iter().find(|(name, _)| *name == row.name && count == FILES);
            if let Some((_, most)) = most {
                // Of a server, without the quiet time before its scan.
                let own = done.counted.get(watched::SCANNED).map(|millis| *millis as f64 / 1e3);
                let took = (own.unwrap_or(done.usage.seconds) * 1e3 / resync_seconds).ceil() as u64;
                done.checks.push(Check::at_most("thousandths of the time of resync-build", *most, took));
            }
            row.command = command;
            row.rounds.push(done);
        }
    }
    let setup = BTreeMap::from([
        ("bytes_each", json!(BYTES_EACH)),
        ("changed", json!(count / ONE_IN)),
        ("digest", json!("sha-256")),
        ("files", json!(count)),
        ("rounds", json!(options.rounds)),
    ]);
    let finished_at = jiff::Timestamp::now();
    Ok(Report { case: "publish-files", finished_at, machine, setup, versions, rows }.summed_up(&[RESYNC]))
}

impl Bench {
    /// All commands, one after the other: each needs what the one before left.
    fn round(&self, round: u32) -> anyhow::Result<Vec<(String, Round)>> {
        let folder = self.work.make(&format!("round-{round}"))?;
        let mut done = Vec::new();
        let build = self.resync.command().args(["--write-resourcelist", "--hash", "sha-256", "--paths"]);
        let build = build.arg(&self.files).arg("--outfile").arg(folder.join("resync.xml"));
        // Two mappings: the files, and the lists, whose index names them by URI.
        let build = build.arg(format!("{BASE}={}", self.files.display()));
        let build = build.arg(format!("{BASE}lists/={}", folder.display()));
        let (ended, mut took) = measured(&build, &folder, None)?;
        ended.succeeded()?;
        took.checks = vec![Check::equal("entries", self.count, entries(&folder)?)];
        done.push((build.shown(self.work.path()), took));

        let publish =
            self.thresher.measured().args(["publish", "--base", BASE, "--files-url", BASE, "--from"]);
        let publish = publish.arg(&self.files).args(["--to", "public", "--json"]);
        // The first scan reads again what is younger than two seconds: no file is.
        done.push(self.publish(&publish, &folder, self.count, 0)?);
        let changed = self.change(round)?;
        done.push(self.publish(&publish, &folder, changed, changed)?);
        // Those that were written just before are read once more.
        done.push(self.publish(&publish, &folder, changed, 0)?);
        done.push(watched::round(self, &folder, round)?);
        Ok(done)
    }

    /// Writes one file in so many again. Returns how many.
    fn change(&self, version: u32) -> anyhow::Result<u64> {
        for number in (0..self.count).step_by(usize::try_from(ONE_IN)?) {
            write(&self.files, number, version)?;
        }
        Ok(self.count.div_ceil(ONE_IN))
    }

    fn publish(
        &self,
        command: &CommandLine,
        folder: &Path,
        read: u64,
        changes: u64,
    ) -> anyhow::Result<(String, Round)> {
        let (ended, mut took) = measured(command, folder, None)?;
        let published = last_line(&ended)?;
        took.checks = vec![
            Check::equal("resources", self.count, published.resources),
            Check::equal("files", self.count, published.scan.files),
            Check::at_most("files read", read, published.scan.read),
            Check::equal("changes", changes, published.changes),
            Check::at_most("peak resident bytes", MOST_RESIDENT_BYTES, ended.usage.peak_rss_bytes),
        ];
        Ok((command.shown(self.work.path()), took))
    }
}

fn write(files: &Path, number: u64, version: u32) -> anyhow::Result<()> {
    let folder = files.join(format!("{:05}", number / TOGETHER));
    fs::create_dir_all(&folder)?;
    let line = format!("file {number} in round {version}\n");
    let body: Vec<u8> = line.bytes().cycle().take(BYTES_EACH).collect();
    Ok(fs::write(folder.join(format!("{number:07}.txt")), body)?)
}

/// The entries of the lists that resync-build wrote: it divides them at 50,000.
fn entries(folder: &Path) -> anyhow::Result<u64> {
    let mut count = 0;
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        if path.extension().is_some_and(|end| end == "xml") {
            let text = fs::read_to_string(&path)?;
            count += text.matches("<url>").count() as u64;
        }
    }
    ensure!(count > 0, "resync-build wrote no entry");
    Ok(count)
}

fn last_line(ended: &Ended) -> anyhow::Result<Published> {
    ended.succeeded()?;
    let output = ended.output()?;
    let last = output.lines().last().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("the last line of thresher is {last:?}"))
}
