//! `publish-push`: a publisher's own hub tells subscribers of 1,000 changes a second; and of those of ten minutes in which
//! it was down.

mod changing;
mod subscribers;
mod tally;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use jiff::Timestamp;
use serde_json::json;
use tokio::runtime::Runtime;

use self::changing::Changing;
use self::subscribers::Subscribers;
use self::tally::Tally;
use super::publish::Held;
use super::unchecked;
use crate::check::{self, Check};
use crate::cli::PublishPushOptions;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::measure::Usage;
use crate::meter;
use crate::place::Place;
use crate::publish_server::PublishServer;
use crate::ready::make_ready;
use crate::report::{Report, Round, Row};
use crate::stats::{Spread, percentile, rounded};
use crate::thresher::Thresher;

const TOLD: &str = "changes as they come";
const DOWN: &str = "the hub was down";
/// The promise: half of all changes are delivered within a second.
const MOST_MEDIAN_MILLIS: u64 = 1_000;
/// How long nothing new may come before the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(120);
/// Each change is of another resource. With fewer than these, each publication would make a Resource List.
const LEAST_RESOURCES: u64 = 20_000;
/// How often deliveries are counted at the end.
const LOOK: Duration = Duration::from_millis(200);

/// State that every round needs.
struct Bench<'a> {
    thresher: Thresher,
    work: WorkFolder,
    runtime: Runtime,
    options: &'a PublishPushOptions,
}

/// A publisher with subscribers, and the harvest that it publishes.
struct Stand {
    place: Place,
    changing: Changing,
    server: PublishServer,
    subscribers: Subscribers,
}

/// Runs the case.
pub(crate) fn run(options: &PublishPushOptions) -> anyhow::Result<Report> {
    options.common.only_all_rows()?;
    let thresher = Thresher::get(&options.common)?;
    let work = WorkFolder::new(&options.common, "publish-push")?;
    let machine = Machine::here(work.path());
    let versions = vec![thresher.version.clone()];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let bench = Bench { thresher, work, runtime, options };
    let told = options.per_second.get() * options.seconds.get();
    let mut rows = vec![Row::new(TOLD, told), Row::new(DOWN, options.missed.get())];
    for round in 1..=options.common.rounds.get() {
        eprintln!("round {round}: {TOLD}");
        rows[0].rounds.push(bench.tell(round)?);
        eprintln!("round {round}: {DOWN}");
        rows[1].rounds.push(bench.miss(round)?);
    }
    for row in &mut rows {
        row.command = "thresher publish --listen --own-hub".to_owned();
    }
    let setup = BTreeMap::from([
        ("changes_per_second", json!(options.per_second)),
        ("seconds", json!(options.seconds)),
        ("subscribers", json!([options.subscribers, options.missing])),
        ("changes_while_down", json!(options.missed)),
        ("rounds", json!(options.common.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "publish-push", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[]))
}

impl Bench<'_> {
    /// Changes come at their pace, and each is delivered to all.
    fn tell(&self, round: usize) -> anyhow::Result<Round> {
        let (per_second, seconds) = (self.options.per_second.get(), self.options.seconds.get());
        let mut stand =
            self.stand(&format!("told-{round}"), per_second * seconds, self.options.subscribers.get())?;
        make_ready();
        let (machine, working) = (meter::machine_cpu_seconds()?, stand.server.cpu_seconds());
        let begun = Instant::now();
        self.runtime.block_on(stand.changing.at_a_pace(per_second, seconds))?;
        let tally = self.runtime.block_on(until_told(&stand.changing, &stand.subscribers))?;
        let mut done = stand.round(begun, working, machine)?;
        let lags = tally.lags(&stand.changing);
        let whole = |millis: Option<f64>| millis.map_or(u64::MAX, |millis| millis.ceil() as u64);
        let median = whole(Spread::of(lags.iter().copied()).map(|spread| spread.median));
        done.counted.extend([
            ("median_ms".to_owned(), median),
            ("p95_ms".to_owned(), whole(percentile(&lags, 95))),
            ("most_ms".to_owned(), whole(percentile(&lags, 100))),
        ]);
        done.checks.extend(tally.checks(per_second * seconds));
        done.checks.push(Check::holds("each interval joins the one before", tally.joins()));
        done.checks.push(Check::at_most("median lag in ms", MOST_MEDIAN_MILLIS, median));
        done.counted.extend(tally.counted());
        Ok(done)
    }

    /// Changes come while the publisher is down, and are delivered when it is back.
    fn miss(&self, round: usize) -> anyhow::Result<Round> {
        let missed = self.options.missed.get();
        let mut stand = self.stand(&format!("down-{round}"), missed, self.options.missing.get())?;
        stand.server.kill();
        self.runtime.block_on(stand.changing.at_once(missed))?;
        make_ready();
        let machine = meter::machine_cpu_seconds()?;
        let begun = Instant::now();
        stand.server.start_again(&self.thresher, &stand.place, &stand.subscribers.options())?;
        let tally = self.runtime.block_on(until_told(&stand.changing, &stand.subscribers))?;
        let mut done = stand.round(begun, 0.0, machine)?;
        done.checks.extend(tally.checks(missed));
        done.counted.extend(tally.counted());
        Ok(done)
    }

    /// A harvest, its publisher, and subscribers that were verified.
    fn stand(&self, name: &str, changes: u64, count: u64) -> anyhow::Result<Stand> {
        let place = Place::directory(&self.work.make(name)?);
        let resources = (changes * 2).max(LEAST_RESOURCES);
        let held = self.runtime.block_on(Held::fill_at(&place, resources, Timestamp::now()))?;
        let changing = self.runtime.block_on(Changing::begin(held))?;
        let subscribers = Subscribers::start(count)?;
        let server = PublishServer::start(&self.thresher, &place, &subscribers.options())?;
        self.runtime.block_on(subscribers.subscribe(&server))?;
        Ok(Stand { place, changing, server, subscribers })
    }
}

impl Stand {
    /// The round so far, since a time, and since the server and the machine had used so much.
    fn round(&self, begun: Instant, working: f64, machine: f64) -> anyhow::Result<Round> {
        let usage = Usage {
            seconds: rounded(begun.elapsed().as_secs_f64()),
            cpu_seconds: rounded(self.server.cpu_seconds() - working),
            peak_rss_bytes: self.server.peak_rss_bytes(),
            exit_status: Some(0),
        };
        let mut done = unchecked(usage, 0.0, meter::machine_cpu_seconds()? - machine);
        done.checks = vec![check::resident(done.usage.peak_rss_bytes)];
        Ok(done)
    }
}

/// Waits until each subscriber was told of all changes, or nothing new has come for long. Returns what they were told.
async fn until_told(changing: &Changing, subscribers: &Subscribers) -> anyhow::Result<Tally> {
    let mut tally = Tally::new(subscribers.count(), changing.resources());
    let mut news = Instant::now();
    loop {
        let before = tally.deliveries();
        tally.take(subscribers)?;
        if tally.deliveries() > before {
            news = Instant::now();
        }
        if tally.least() >= changing.made() || news.elapsed() > PATIENCE {
            ensure!(tally.deliveries() > 0, "no subscriber was told of anything");
            return Ok(tally);
        }
        tokio::time::sleep(LOOK).await;
    }
}
