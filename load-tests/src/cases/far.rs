//! `small-files-tls`, `large-files-tls`, `far-large` and `far-small`: the same harvest over TLS by HTTP/1.1 and by HTTP/2,
//! next to the server and far away from it.

mod entrant;
mod placed;
mod program;

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;

use self::entrant::Entrant;
use self::placed::Placed;
use self::program::{Installed, Program};
use super::{interleaved, measured};
use crate::check::{self, Check};
use crate::cli::{FarOptions, Options};
use crate::far_proxy::Link;
use crate::folder::WorkFolder;
use crate::get_all::Got;
use crate::machine::Machine;
use crate::place::Place;
use crate::ready::FullMemory;
use crate::report::{REACHED, Report, Round};
use crate::thresher::{Outcome, Thresher};
use crate::tls_source::{Protocol, Site, TlsSource};

/// Resources whose bytes are read at the end.
const SAMPLE: usize = 3;
/// The unit of large files.
const MB: u64 = 1_000_000;
/// Bytes of content from which a run fills memory with what it writes.
const FILLS_MEMORY: u64 = 1 << 30;

/// What a case serves, and with how many requests it is harvested.
#[derive(Debug, Clone, Copy)]
struct Task {
    case: &'static str,
    resources: u64,
    bytes_each: u64,
    at_once: u16,
    /// Whether bodies are large: then the rows count megabytes, and nothing is packed.
    is_large: bool,
    programs: &'static [Program],
}

/// What cases of small bodies have in common.
const SMALL: Task =
    Task { case: "", resources: 0, bytes_each: 0, at_once: 16, is_large: false, programs: &Program::ALL };
/// The same of large ones.
const LARGE: Task = Task { is_large: true, ..SMALL };

/// State that every run needs.
struct Bench {
    task: Task,
    thresher: Thresher,
    installed: Installed,
    source: TlsSource,
    /// By distance and protocol, in the order of the entrants.
    places: Vec<Placed>,
    work: WorkFolder,
    /// What fills memory before runs that write gigabytes.
    memory: FullMemory,
}

/// Runs `small-files-tls`.
pub(crate) fn small_files(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(20_000);
    let task = Task { case: "small-files-tls", resources, bytes_each: 2048, ..SMALL };
    run(task, options, &[None])
}

/// Runs `large-files-tls`.
pub(crate) fn large_files(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(64);
    let programs = &[Program::Thresher, Program::Bare, Program::Curl];
    let task = Task { case: "large-files-tls", resources, bytes_each: 64 << 20, programs, ..LARGE };
    run(task, options, &[None])
}

/// Runs `far-large`.
pub(crate) fn large(options: &FarOptions) -> anyhow::Result<Report> {
    let resources = options.common.resources.unwrap_or(8);
    let bytes_each = options.mib_each << 20;
    let task = Task { case: "far-large", resources, bytes_each, ..LARGE };
    let links: Vec<_> = options.links(&[20, 100, 240]).into_iter().map(Some).collect();
    run(task, &options.common, &links)
}

/// Runs `far-small`.
pub(crate) fn small(options: &FarOptions) -> anyhow::Result<Report> {
    let resources = options.common.resources.unwrap_or(1_280);
    let task = Task { case: "far-small", resources, bytes_each: 2048, at_once: 64, ..SMALL };
    let links: Vec<_> = options.links(&[240]).into_iter().map(Some).collect();
    run(task, &options.common, &links)
}

fn run(task: Task, options: &Options, links: &[Option<Link>]) -> anyhow::Result<Report> {
    let thresher = Thresher::get(options)?;
    let installed = Installed::of(task.programs)?;
    let work = WorkFolder::new(options, task.case)?;
    let machine = Machine::here(work.path());
    let source = TlsSource::start(&work, task.resources, task.bytes_each)?;
    let mut places = Vec::new();
    for link in links {
        for protocol in Protocol::ALL {
            places.push(Placed::new(&source, protocol, *link)?);
        }
    }
    let others = installed.peers.values().map(|peer| peer.version.clone());
    let versions = [thresher.version.clone()].into_iter().chain(others).chain([source.source.version()]);
    let versions = versions.collect();
    let entrants = Entrant::all(&installed.programs, places.iter().map(|place| (place.protocol, place.link)));
    let fills_memory = task.resources * task.bytes_each >= FILLS_MEMORY;
    let memory = if fills_memory { FullMemory::below_target()? } else { FullMemory::default() };
    let bench = Bench { task, thresher, installed, source, places, work, memory };
    let count = if task.is_large { (task.resources * task.bytes_each).div_ceil(MB) } else { task.resources };
    let rows = interleaved(
        &entrants,
        |entrant| entrant.name,
        count,
        options,
        |entrant, round| bench.run(entrant, round),
    )?;
    let link = links.iter().flatten().next();
    let setup = BTreeMap::from([
        ("unit", json!(if task.is_large { "MB of content" } else { "resources" })),
        ("resources", json!(task.resources)),
        ("bytes_each", json!(task.bytes_each)),
        ("declared", json!("sha-256, length, lastmod")),
        ("memory_before_each_run", json!(bench.memory.described())),
        ("requests_at_a_time", json!(task.at_once)),
        ("link_bytes_per_second", json!(link.map(|link| link.bytes_per_second))),
        ("largest_window_bytes", json!(link.map(|link| link.most_window))),
        ("stalled_pieces", json!(link.map(|link| link.stalls))),
        ("rounds", json!(options.rounds)),
        ("left_out", json!(bench.installed.left_out)),
        ("transport", json!("TLS 1.3 over loopback")),
    ]);
    let others: Vec<_> = entrants.iter().filter(|entrant| entrant.program != Program::Thresher).collect();
    let others: Vec<_> = others.into_iter().map(|entrant| entrant.name).collect();
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: task.case, finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&others))
}

impl Bench {
    /// One run of one entrant into a new directory, and the checks of its work.
    fn run(&self, entrant: Entrant, round: usize) -> anyhow::Result<(String, Round)> {
        let place = &self.places[entrant.place];
        let folder = self.work.make(&format!("round-{round}/{}", entrant.folder()))?;
        let into = folder.join("into");
        let command = entrant.command(self, place, &folder)?;
        self.memory.restore()?;
        let before = self.source.source.requests()?;
        let (ended, mut done) = measured(&command, &folder, Some(&self.source.source))?;
        done.counted.insert("requests_seen_by_source".to_owned(), self.source.source.requests()? - before);
        if let Some(least) = place.least(self.task) {
            let percent = 100.0 * least.as_secs_f64() / done.usage.seconds;
            done.counted.insert("least_ms".to_owned(), u64::try_from(least.as_millis())?);
            done.counted.insert(REACHED.to_owned(), percent.round() as u64);
        }
        let Site { base, expected, .. } = &place.site;
        done.checks = match entrant.program {
            Program::Thresher => {
                let mut checks = check::synced(&Outcome::of(&ended)?, expected.len() as u64);
                checks.push(check::resident(ended.usage.peak_rss_bytes));
                checks.extend(check::harvest(&self.thresher, &Place::directory(&into), expected, SAMPLE)?);
                checks
            }
            Program::Bare => {
                ended.succeeded()?;
                let got: Got = serde_json::from_str(&ended.output()?)?;
                let mut checks = vec![Check::holds("all bodies have the right sha-256", got == place.all)];
                if self.task.is_large {
                    checks.extend(check::files(&into, base, expected)?);
                }
                checks
            }
            Program::Curl | Program::Aria2c | Program::Wget2 | Program::Rclone => {
                ended.succeeded()?;
                check::files(&into, base, expected)?
            }
        };
        if self.task.is_large {
            // A few large files: deleting them takes little time, and the next run needs the room.
            fs::remove_dir_all(&into)?;
        }
        let shown = command.shown(&folder).replace(base, "$SOURCE");
        Ok((shown.replace(&self.source.certificate().display().to_string(), "$CERTIFICATE"), done))
    }
}
