//! The cases: each measures one thing.

pub(crate) mod change_burst;
pub(crate) mod console;
pub(crate) mod far;
pub(crate) mod hostile_fleet;
pub(crate) mod incremental_idle;
pub(crate) mod large_files;
pub(crate) mod large_packages;
pub(crate) mod latency;
pub(crate) mod many_sources;
mod million;
pub(crate) mod million_audit;
pub(crate) mod million_unchanged;
pub(crate) mod oai;
pub(crate) mod oai_large;
pub(crate) mod oai_loss;
pub(crate) mod profile;
pub(crate) mod publish;
pub(crate) mod publish_files;
pub(crate) mod publish_push;
pub(crate) mod publish_serve;
pub(crate) mod push_flood;
pub(crate) mod push_lag;
pub(crate) mod read_lists;
pub(crate) mod scale_out;
pub(crate) mod scrub;
pub(crate) mod small_files;
pub(crate) mod small_files_fleet;
pub(crate) mod small_source;
pub(crate) mod timegate;

use std::path::Path;
use std::time::Instant;

use anyhow::bail;

use crate::cli::Options;
use crate::fleet::Fleet;
use crate::measure::Usage;
use crate::meter;
use crate::process::{CommandLine, Ended};
use crate::ready::make_ready;
use crate::report::{Round, Row};
use crate::source::Source;
use crate::stats::rounded;

/// Runs every entrant in each round, and makes a row of it. Each round begins with another one, so that no
/// entrant always pays for being first. `run` returns the command as printed, and its round; rounds count
/// from 1.
///
/// # Errors
/// When no entrant has a requested name, and when a run fails.
fn interleaved<E: Copy>(
    entrants: &[E],
    name: impl Fn(E) -> &'static str,
    resources: u64,
    options: &Options,
    mut run: impl FnMut(E, usize) -> anyhow::Result<(String, Round)>,
) -> anyhow::Result<Vec<Row>> {
    let names: Vec<&str> = entrants.iter().map(|entrant| name(*entrant)).collect();
    if let Some(unknown) = options.only.iter().find(|only| !names.contains(&only.as_str())) {
        bail!("there is no row '{unknown}' in this case: choose from '{}'", names.join("', '"));
    }
    let is_asked = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let entrants: Vec<E> = entrants.iter().copied().filter(|entrant| is_asked(name(*entrant))).collect();
    let mut rows: Vec<Row> = entrants.iter().map(|entrant| Row::new(name(*entrant), resources)).collect();
    for round in 0..options.rounds.get() {
        for turn in 0..entrants.len() {
            let place = (turn + round) % entrants.len();
            eprintln!("round {}: {}", round + 1, rows[place].name);
            let (command, done) = run(entrants[place], round + 1)?;
            rows[place].command = command;
            rows[place].rounds.push(done);
        }
    }
    Ok(rows)
}

/// Runs a command inside a folder, and measures it, the Source if there is one, and all other processes.
fn measured(command: &CommandLine, folder: &Path, source: Option<&Source>) -> anyhow::Result<(Ended, Round)> {
    make_ready();
    let served = || source.map_or(0.0, Source::cpu_seconds);
    let machine = meter::machine_cpu_seconds()?;
    let serving = served();
    let ended = command.measured(folder)?;
    let served = served() - serving;
    let all = meter::machine_cpu_seconds()? - machine;
    let round = unchecked(ended.usage, served, all);
    Ok((ended, round))
}

/// Measures work that a fleet does: its services, and all other processes.
fn of_fleet(fleet: &Fleet, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Round> {
    make_ready();
    let (machine, working) = (meter::machine_cpu_seconds()?, fleet.cpu_seconds());
    let start = Instant::now();
    work()?;
    let seconds = start.elapsed().as_secs_f64();
    let used = fleet.cpu_seconds() - working;
    let all = meter::machine_cpu_seconds()? - machine;
    let usage = Usage {
        seconds: rounded(seconds),
        cpu_seconds: rounded(used),
        peak_rss_bytes: fleet.peak_rss_bytes(),
        exit_status: Some(0),
    };
    Ok(unchecked(usage, 0.0, all))
}

/// Harvests an added Source by a fleet, and measures its services, the Source and all other processes,
/// including the servers of bus and store.
fn harvested(fleet: &Fleet, source: &Source) -> anyhow::Result<Round> {
    fleet.until_ready()?;
    make_ready();
    let (machine, serving, working) =
        (meter::machine_cpu_seconds()?, source.cpu_seconds(), fleet.cpu_seconds());
    let start = Instant::now();
    fleet.harvest(&source.list())?;
    let seconds = start.elapsed().as_secs_f64();
    let served = source.cpu_seconds() - serving;
    let used = fleet.cpu_seconds() - working;
    let all = meter::machine_cpu_seconds()? - machine;
    let usage = Usage {
        seconds: rounded(seconds),
        cpu_seconds: rounded(used),
        peak_rss_bytes: fleet.peak_rss_bytes(),
        exit_status: Some(0),
    };
    Ok(unchecked(usage, served, all))
}

/// A round with its time, before its checks. `all` is the processor time of the whole machine.
fn unchecked(usage: Usage, served: f64, all: f64) -> Round {
    Round {
        usage,
        source_cpu_seconds: rounded(served),
        // The kernel's three counts are taken one after another, and rounded to ticks.
        other_cpu_seconds: rounded((all - served - usage.cpu_seconds).max(0.0)),
        checks: Vec::new(),
        counted: Default::default(),
    }
}
