//! `read-lists`: speed and memory of reading a Change List of 1,000,000 entries, compared with the reference
//! implementation, which reads one of 50,000.

mod lists;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use self::lists::ChangeList;
use super::measured;
use crate::check::Check;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::peers::{self, Peer};
use crate::process::CommandLine;
use crate::read_list::Read;
use crate::report::{Report, Round, Row};
use crate::thresher;

const ENTRIES: u64 = 1_000_000;
/// The most entries in one document, by the specification. The reference implementation gets this many: it
/// holds all of them in memory.
const FEW: u64 = 50_000;
/// The promise: memory is flat.
const MOST_RESIDENT_BYTES: u64 = 64_000_000;
const RESYNC: &str = "resync";
const EVENTS: &str = "quick-xml's events";

/// State that every run needs.
struct Bench {
    resync: Peer,
    reader: PathBuf,
    work: WorkFolder,
}

/// The programs that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Ours,
    /// The XML parser of our reader, and nothing else.
    Events,
    Resync,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let entries = options.resources.unwrap_or(ENTRIES);
    let resync = peers::resync_library()?;
    let work = WorkFolder::new(options, "read-lists")?;
    let machine = Machine::here(work.path());
    let documents = work.make("documents")?;
    eprintln!("writing Change Lists of {entries} and of {FEW} entries");
    let many = ChangeList::write(&documents, "changelist.xml", entries)?;
    let packed = ChangeList::write(&documents, "changelist.xml.gz", entries)?;
    let few = ChangeList::write(&documents, "changelist-50000.xml", FEW)?;
    std::fs::write(work.path().join("read.py"), include_str!("../../read-lists/read.py"))?;
    let reader = std::env::current_exe()?;
    let commit = thresher::commit().unwrap_or_default();
    let profile = thresher::profile(&reader).unwrap_or("unknown");
    let ours = format!("resourcesync {} ({commit}, profile {profile})", env!("CARGO_PKG_VERSION"));
    let versions = vec![ours, resync.version.clone()];
    let bench = Bench { resync, reader, work };

    let entrants = [
        ("thresher's reader", Program::Ours, &many),
        (EVENTS, Program::Events, &many),
        ("thresher's reader, gzip", Program::Ours, &packed),
        ("thresher's reader, 50,000 entries", Program::Ours, &few),
        (RESYNC, Program::Resync, &few),
    ];
    let mut rows: Vec<Row> =
        entrants.iter().map(|(name, _, list)| Row::new(name, list.expected.entries)).collect();
    for round in 0..options.rounds.get() {
        for turn in 0..rows.len() {
            // Each round begins with another one, so that no program always pays for being first.
            let place = (turn + round) % rows.len();
            let (name, program, list) = entrants[place];
            eprintln!("round {}: {name}", round + 1);
            let (command, done) = bench.run(program, list)?;
            rows[place].command = command;
            rows[place].rounds.push(done);
        }
    }
    let setup = BTreeMap::from([
        ("bytes", json!(many.bytes)),
        ("bytes_gzip", json!(packed.bytes)),
        ("bytes_of_50000", json!(few.bytes)),
        ("declared", json!("lastmod, change, datetime, sha-256, length, type, one link")),
        ("entries", json!(entries)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("files, held in memory by the kernel")),
    ]);
    let finished_at = jiff::Timestamp::now();
    Ok(Report { case: "read-lists", finished_at, machine, setup, versions, rows }
        .summed_up(&[EVENTS, RESYNC]))
}

impl Bench {
    /// Reads a list once, and returns whether all of it was read.
    fn run(&self, program: Program, list: &ChangeList) -> anyhow::Result<(String, Round)> {
        let folder = self.work.make("runs")?;
        let command = match program {
            Program::Ours => CommandLine::new(&self.reader).arg("read-list"),
            Program::Events => CommandLine::new(&self.reader).args(["read-list", "--events"]),
            Program::Resync => self.resync.command().arg(self.work.path().join("read.py")),
        };
        let command = command.arg(&list.path);
        let (ended, mut round) = measured(&command, &folder, None)?;
        ended.succeeded()?;
        let read: Read = serde_json::from_str(&ended.output()?)?;
        round.checks = vec![match program {
            Program::Events => {
                let is_right = (read.entries, read.links) == (list.expected.entries, list.expected.links);
                Check::holds("all entries and links were met", is_right)
            }
            _ => Check::holds("all entries, digests, lengths and links were read", read == list.expected),
        }];
        if program == Program::Ours {
            let most = Check::at_most("peak resident bytes", MOST_RESIDENT_BYTES, ended.usage.peak_rss_bytes);
            round.checks.push(most);
        }
        let shown = command.shown(self.work.path()).replace("documents/", "");
        Ok((shown, round))
    }
}
