//! One round: a fleet of its own harvests all Sources, runs the healthy ones once more, and polls them.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Bench;
use super::killer::Killer;
use super::settled::Settled;
use super::snapshot::Snapshot;
use super::stage::Stage;
use super::stored::stored_checks;
use crate::check::Check;
use crate::ready::make_ready;
use crate::report::Round;
use crate::sources_server::Kind;
use crate::stats::rounded;

/// The promise: a scheduler with 10,000 Sources takes no more memory.
const MOST_SCHEDULER_BYTES: u64 = 1_000_000_000;
/// The promise: no healthy Source ends later than this percentage of the median.
const MOST_PERCENT_OF_MEDIAN: u64 = 200;
/// The longest wait for Sources that work again, after the healthy ones are in sync.
const FLAPPING_LIMIT: Duration = Duration::from_secs(600);
/// The longest wait until polls that were due at once have ended, before idle polls are measured.
const SETTLING: Duration = Duration::from_secs(30);

/// The rounds of each row.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// The first harvest of all Sources.
    pub(super) first: Vec<Round>,
    /// One more run of all healthy Sources.
    pub(super) again: Vec<Round>,
    /// Idle polls, for each interval.
    pub(super) idle: Vec<Round>,
    /// A scheduler that starts when all Sources are there.
    pub(super) restarted: Vec<Round>,
}

/// Plays one round, and adds its results.
pub(super) fn play(bench: &Bench<'_>, round: usize, all: &mut Rounds) -> anyhow::Result<()> {
    let mut stage = Stage::start(bench, round)?;
    make_ready();
    let since = Timestamp::now();
    all.first.push(stage.first(since)?);
    if !stage.settled(since)?.is_over(Kind::Ok) {
        eprintln!("not every healthy Source is harvested, so that idle polls cannot be measured");
        return Ok(());
    }
    if bench.options.idle_seconds > 0 {
        if !bench.options.no_second_run {
            all.again.push(stage.again()?);
        }
        for seconds in &bench.options.look_every {
            all.idle.push(stage.idle(seconds.get())?);
        }
    }
    all.restarted.push(stage.restarted()?);
    Ok(())
}

impl Stage<'_> {
    /// The first harvest of all Sources, until all healthy ones are in sync.
    fn first(&mut self, since: Timestamp) -> anyhow::Result<Round> {
        let before = Snapshot::take(&mut self.processes)?;
        let all: Vec<String> = self.ids.iter().map(|(_, id)| id.clone()).collect();
        self.api.submit(&all)?;
        let mut killer = Killer::new(self.bench.options.kill_every(), self.bench.options.schedulers.into());
        let settled = self.until_over(Kind::Ok, since, self.bench.options.limit(), Some(&mut killer))?;
        self.processes.fleet.until_ready()?;
        let phase = Snapshot::take(&mut self.processes)?.since(&before, self.ids.len() as u64);
        let seconds = settled.last_finish(Kind::Ok).filter(|_| settled.is_over(Kind::Ok));
        let seconds = seconds.unwrap_or(phase.seconds);
        let mut done = phase.round(seconds, &self.processes);
        done.counted.extend(settled.figures());
        done.counted.extend(settled.first_requests(&self.processes.sources.take_first_requests()?));
        done.counted.insert("schedulers_killed".to_owned(), killer.kills as u64);
        self.note_shares(&mut done)?;
        self.check_first(&mut done, &settled)?;
        self.wait_for_flapping(&mut done, since)?;
        Ok(done)
    }

    /// One more run of all healthy Sources: polls, all of them due at once.
    fn again(&mut self) -> anyhow::Result<Round> {
        let before = Snapshot::take(&mut self.processes)?;
        self.processes.sources.take_first_requests()?;
        let since = Timestamp::now();
        let healthy: Vec<String> = self.healthy().cloned().collect();
        self.api.submit(&healthy)?;
        let settled = self.until_over(Kind::Ok, since, self.bench.options.limit(), None)?;
        let phase = Snapshot::take(&mut self.processes)?.since(&before, healthy.len() as u64);
        let seconds = settled.last_finish(Kind::Ok).unwrap_or(phase.seconds);
        let mut done = phase.round(seconds, &self.processes);
        done.counted.extend(settled.figures());
        done.counted.extend(settled.first_requests(&self.processes.sources.take_first_requests()?));
        let in_sync = settled.in_sync(Kind::Ok);
        done.checks = vec![Check::equal("healthy Sources in sync again", healthy.len() as u64, in_sync)];
        Ok(done)
    }

    /// Idle polls of all Sources, each at this interval.
    fn idle(&mut self, every: u64) -> anyhow::Result<Round> {
        let seconds = self.bench.options.idle_seconds;
        eprintln!("idle polls of each Source every {every} s, for {seconds} s");
        self.put_sources(Some(every))?;
        // Polls that are due at once are not what an interval costs.
        self.wait(Duration::from_secs(every).min(SETTLING));
        let before = Snapshot::take(&mut self.processes)?;
        self.wait(Duration::from_secs(seconds));
        let healthy = self.healthy().count() as u64;
        let phase = Snapshot::take(&mut self.processes)?.since(&before, healthy);
        let measured = phase.seconds;
        let of_hundred = |count: u64| (count * 100).div_ceil(phase.looks.max(1));
        let figures = [
            ("look_every_seconds", every),
            ("looks_expected", (healthy as f64 * measured / every as f64) as u64),
            ("looks_in_100_seconds", (100.0 * phase.looks as f64 / measured) as u64),
            ("store_requests_of_100_looks", of_hundred(phase.store_requests)),
            ("scheduler_permille_of_a_core", (1e3 * phase.scheduler_cpu / measured).ceil() as u64),
        ];
        let mut done = phase.round(measured, &self.processes);
        done.counted.extend(figures.map(|(name, count)| (name.to_owned(), count)));
        self.note_shares(&mut done)?;
        Ok(done)
    }

    /// Kills a scheduler and starts it again, now that all Sources are there: the time until it is ready.
    fn restarted(&mut self) -> anyhow::Result<Round> {
        let before = Snapshot::take(&mut self.processes)?;
        let began = Instant::now();
        self.processes.fleet.kill_and_start("scheduler", 0)?;
        self.processes.fleet.until_ready()?;
        let seconds = began.elapsed().as_secs_f64();
        let phase = Snapshot::take(&mut self.processes)?.since(&before, self.ids.len() as u64);
        let mut done = phase.round(rounded(seconds), &self.processes);
        // Of two sizes, the difference tells what a Source takes: its spec, its last run, its plan, its next time.
        let resident = self.processes.fleet.peak_rss_bytes_of_running("scheduler");
        done.counted.insert("peak_bytes_of_scheduler_until_ready".to_owned(), resident);
        Ok(done)
    }

    fn check_first(&self, done: &mut Round, settled: &Settled) -> anyhow::Result<()> {
        let healthy = self.healthy().count() as u64;
        let resources = healthy * u64::from(self.bench.population.resources);
        let percent = done.counted.get("finish_greatest_percent_of_median").copied().unwrap_or(u64::MAX);
        let scheduler = self.processes.fleet.peak_rss_bytes_of("scheduler");
        done.checks = vec![
            Check::equal("healthy Sources in sync", healthy, settled.in_sync(Kind::Ok)),
            Check::at_most(
                "end of the last healthy Source in percent of the median",
                MOST_PERCENT_OF_MEDIAN,
                percent,
            ),
            Check::at_most("peak resident bytes of a scheduler", MOST_SCHEDULER_BYTES, scheduler),
        ];
        let is_killed = self.bench.options.kill_every().is_some();
        if !is_killed {
            // A run that was taken over after its end was not yet told counts from zero.
            let found = settled.resources(Kind::Ok);
            done.checks.push(Check::equal("resources stored, by their runs", resources, found));
        }
        if !settled.is_over(Kind::Ok) {
            // The first check says so already, and catalogs that are in use are slow to read.
            return Ok(());
        }
        done.checks.extend(stored_checks(self.bench, &self.processes, is_killed)?);
        Ok(())
    }

    /// Sources that work again come into sync too, in their time.
    fn wait_for_flapping(&mut self, done: &mut Round, since: Timestamp) -> anyhow::Result<()> {
        let flapping = self.bench.population.of_kind(Kind::Flapping).count() as u64;
        if flapping == 0 || !self.settled(since)?.is_over(Kind::Ok) {
            return Ok(());
        }
        let settled = self.until_over(Kind::Flapping, since, FLAPPING_LIMIT, None)?;
        let seconds = settled.last_finish(Kind::Flapping).unwrap_or_default();
        done.counted.insert("flapping_finish_greatest_ms".to_owned(), (seconds * 1e3).ceil() as u64);
        let in_sync = settled.in_sync(Kind::Flapping);
        done.checks.push(Check::equal("flapping Sources in sync at last", flapping, in_sync));
        Ok(())
    }
}
