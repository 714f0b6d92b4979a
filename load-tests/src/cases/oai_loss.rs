//! `oai-loss`: whether a harvest of OAI-PMH loses or doubles a record, while its process is killed all the time, tokens
//! expire, pages fail, and records change.

mod checks;
mod trouble;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::json;
use simulated_source::{RepositoryFault, RepositorySpec, SimulatedRepository};

use self::trouble::Trouble;
use super::unchecked;
use crate::check::Check;
use crate::cli::OaiLossOptions;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::measure::Usage;
use crate::meter;
use crate::ready::make_ready;
use crate::report::{Report, Round, Row};
use crate::stats::rounded;
use crate::thresher::Thresher;

/// How long tokens live.
const TOKEN_LIFE: Duration = Duration::from_secs(30);
/// Runs of a harvest that ends at last.
const MOST_RUNS: u64 = 5_000;
/// Runs without trouble until nothing is left to do.
const QUIET_RUNS: u64 = 3;

/// The last line of `sync --json`, as far as it is looked at here.
#[derive(Debug, Deserialize)]
struct Outcome {
    in_sync: bool,
    stored: u64,
    gaps: u64,
    failed: u64,
}

/// What happened in a harvest.
#[derive(Debug, Default)]
struct Done {
    runs: u64,
    kills: u64,
    /// Gaps that runs told.
    gaps: u64,
}

/// Runs the case.
pub(crate) fn run(options: &OaiLossOptions) -> anyhow::Result<Report> {
    options.common.only_all_rows()?;
    let thresher = Thresher::get(&options.common)?;
    let work = WorkFolder::new(&options.common, "oai-loss")?;
    let machine = Machine::here(work.path());
    let mut row = Row::new("killed all the time", options.count());
    for round in 0..options.common.rounds.get() {
        let folder = work.make(&format!("round-{}", round + 1))?;
        row.rounds.push(harvest(options, &thresher, &folder)?);
    }
    row.command = "thresher sync BASE --view none".to_owned();
    let setup = BTreeMap::from([
        ("records", json!(options.count())),
        ("killed_every_ms", json!(options.kill_every.get())),
        ("latency_ms", json!(options.latency)),
        ("failing_pages_per_mille", json!(options.failing_per_mille)),
        ("token_life_seconds", json!(TOKEN_LIFE.as_secs())),
        ("rounds", json!(options.common.rounds)),
    ]);
    let versions = vec![thresher.version.clone()];
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "oai-loss", finished_at, machine, setup, versions, rows: vec![row] };
    Ok(report.summed_up(&[]))
}

/// Harvests all records, then all of them once more, while there is trouble; and the rest without.
fn harvest(options: &OaiLossOptions, thresher: &Thresher, folder: &Path) -> anyhow::Result<Round> {
    let latency = (options.latency > 0).then(|| Duration::from_millis(options.latency));
    let spec = RepositorySpec { latency, ..RepositorySpec::default() };
    // The repository has one of its own for the time after the start.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let repository =
        runtime.block_on(SimulatedRepository::start(spec.records(options.count()).seconds_apart(60)))?;
    repository.set_fault(RepositoryFault::Flaky(options.failing_per_mille));
    repository.set_fault(RepositoryFault::ShortTokenLife(TOKEN_LIFE));
    make_ready();
    let machine = meter::machine_cpu_seconds()?;
    let (start, mut done) = (Instant::now(), Done::default());
    let trouble = Trouble::default();
    let harvested = std::thread::scope(|threads| {
        let changing = threads.spawn(|| trouble.change(&repository));
        let harvested = harvest_in_trouble(options, thresher, folder, &repository, &mut done);
        trouble.end();
        changing.join().ok().context("the thread that changes records failed")?;
        harvested
    });
    harvested?;
    let seconds = start.elapsed().as_secs_f64();
    repository.clear_faults();
    let quiet = (0..QUIET_RUNS)
        .filter_map(|_| sync(thresher, folder, &repository, &[], Duration::MAX).transpose())
        .collect::<anyhow::Result<Vec<Outcome>>>()?;
    let requests = repository.requests();
    let usage =
        Usage { seconds: rounded(seconds), cpu_seconds: 0.0, peak_rss_bytes: 0, exit_status: Some(0) };
    let all = meter::machine_cpu_seconds()? - machine;
    let mut round = unchecked(usage, 0.0, all);
    for (name, count) in [
        ("runs", done.runs),
        ("kills", done.kills),
        ("gaps told meanwhile", done.gaps),
        ("records changed meanwhile", trouble.changes()),
        (
            "failed answers",
            requests.by_status.iter().filter(|(status, _)| **status >= 400).map(|(_, n)| n).sum(),
        ),
        ("requests for lists", requests.count("ListRecords") + requests.count("ListIdentifiers")),
        ("requests for records", requests.count("GetRecord")),
    ] {
        round.counted.insert(name.to_owned(), count);
    }
    round.checks.push(Check::holds("it was killed", done.kills > 0));
    if let [first, .., last] = &quiet[..] {
        round.checks.push(Check::equal("gaps after the first run without trouble", 0, first.gaps));
        round.checks.push(Check::holds("in sync at the end", last.in_sync));
        round.checks.push(Check::equal("stored by the last run", 0, last.stored));
        round.checks.push(Check::equal("problems at the end", 0, last.failed));
    }
    round.checks.extend(checks::records(thresher, folder, &repository)?);
    round.checks.extend(runtime.block_on(checks::changes(folder, &repository.base_url()))?);
    Ok(round)
}

/// Harvests all records, and all of them once more, and kills the process all the time.
fn harvest_in_trouble(
    options: &OaiLossOptions,
    thresher: &Thresher,
    folder: &Path,
    repository: &SimulatedRepository,
    done: &mut Done,
) -> anyhow::Result<()> {
    let mut next = |mode: &str| -> anyhow::Result<Option<Outcome>> {
        done.runs += 1;
        ensure!(done.runs <= MOST_RUNS, "{MOST_RUNS} runs were not enough");
        let outcome = sync(thresher, folder, repository, &["--mode", mode], options.kill_every())?;
        match &outcome {
            None => {
                done.kills += 1;
                if done.kills.is_multiple_of(3) {
                    repository.expire_tokens();
                }
            }
            Some(outcome) => done.gaps += outcome.gaps,
        }
        Ok(outcome)
    };
    // A page of HTML that comes twice ends a run; the next one goes on.
    while next("auto")?.is_none_or(|outcome| !outcome.in_sync) {}
    // A killed baseline goes on too. One that ends leaves gaps, since pages fail: a further one would ask for everything
    // again, and have others. So the rest is left to incremental runs, as a schedule leaves it.
    let pages =
        repository.requests().count("ListRecords") + options.count() / RepositorySpec::default().page_size;
    loop {
        let has_ended = next("baseline")?.is_some_and(|outcome| outcome.in_sync || outcome.gaps > 0);
        if has_ended && repository.requests().count("ListRecords") >= pages {
            break;
        }
    }
    while next("auto")?.is_none_or(|outcome| !outcome.in_sync) {}
    Ok(())
}

/// Runs one `sync`, and kills it after a time: then there is no outcome.
fn sync(
    thresher: &Thresher,
    folder: &Path,
    repository: &SimulatedRepository,
    options: &[&str],
    kill_after: Duration,
) -> anyhow::Result<Option<Outcome>> {
    let mut command = thresher.command();
    command
        .args(["sync", &repository.base_url(), "--view", "none", "--json", "--into"])
        .arg(folder.join("into"));
    // A failed answer is not asked for again, so that each one is the harvest's to bear.
    command.args(options).args(["--retries", "0"]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start thresher sync")?;
    let start = Instant::now();
    while child.try_wait()?.is_none() {
        if start.elapsed() >= kill_after {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    match serde_json::from_str(last) {
        Ok(outcome) => Ok(Some(outcome)),
        // It could not run, since the first answer failed.
        Err(_) if output.status.code() == Some(3) => {
            Ok(Some(Outcome { in_sync: false, stored: 0, gaps: 0, failed: 0 }))
        }
        Err(error) => Err(error).context(format!("thresher sync ended with {} and {last:?}", output.status)),
    }
}
