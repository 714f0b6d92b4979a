//! `push-lag`: a Source changes ten times a second and its hub pushes the changes; measures the time until
//! each change is stored.

mod lag;
mod telling;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use model::SourceId;
use serde_json::json;
use simulated_source::{SimulatedSource, Size, SourceSpec};
use testkit::hub::SimulatedHub;
use testkit::servers::{NatsServer, S3Fixture, SeaweedServer};
use testkit::waiting::until;

use super::{interleaved, unchecked};
use crate::check::Check;
use crate::cli::Options;
use crate::fleet::{Fleet, FleetStore};
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::measure::Usage;
use crate::meter;
use crate::ready::make_ready;
use crate::report::{Report, Round};
use crate::stats::{Spread, percentile, rounded};
use crate::thresher::Thresher;
use telling::{PACE, Told, Way};

/// Changes of a round: a minute's.
const CHANGES: u64 = 600;
const BYTES_EACH: u64 = 2048;
const ROWS: [(&str, Way); 2] = [("all arrive", Way::Sound), ("5 % lost, doubled, late", Way::Troubled)];
/// The promise: half of all changes are stored within a second.
const MOST_MEDIAN_MILLIS: u64 = 1_000;
const TOKEN: &str = "a token of the load test";

/// State that every round needs.
struct Bench {
    thresher: Thresher,
    nats: NatsServer,
    s3: SeaweedServer,
    work: WorkFolder,
    runtime: tokio::runtime::Runtime,
    changes: u64,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let changes = options.resources.unwrap_or(CHANGES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "push-lag")?;
    let machine = Machine::here(work.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let versions = vec![thresher.version.clone()];
    let bench = Bench { thresher, nats, s3, work, runtime, changes };
    let rows = interleaved(
        &ROWS,
        |(name, _)| name,
        changes,
        options,
        |(_, way), round| Ok(("POST each change to the fleet's callback".to_owned(), bench.run(round, way)?)),
    )?;
    let setup = BTreeMap::from([
        ("changes", json!(changes)),
        ("changes_per_second", json!(1_000 / PACE.as_millis())),
        ("bytes_each", json!(BYTES_EACH)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, NATS, SeaweedFS as S3")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "push-lag", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[]))
}

impl Bench {
    /// One minute of changes, pushed to a fleet that was started for it and has stored the earlier state.
    fn run(&self, round: usize, way: Way) -> anyhow::Result<Round> {
        let name = format!("round-{round}-{}", if way == Way::Sound { "sound" } else { "troubled" });
        let hub = Arc::new(SimulatedHub::start()?);
        let spec =
            SourceSpec::default().resources(self.changes * 2).size(Size::Fixed(BYTES_EACH)).hub(hub.url());
        let source = self.runtime.block_on(SimulatedSource::start(spec))?;
        let s3 = self.s3.fixture();
        let fleet = self.fleet(&name, &s3, &hub)?;
        fleet.add(&source.well_known(), &[])?;
        fleet.harvest(&source.well_known())?;
        self.runtime.block_on(until("the hub has verified", || !hub.subscribers().is_empty()));

        make_ready();
        let machine = meter::machine_cpu_seconds()?;
        let working = fleet.cpu_seconds();
        let start = Instant::now();
        let changes = usize::try_from(self.changes)?;
        let told = self.runtime.block_on(telling::tell(&source, &hub, way, changes));
        let id = SourceId::of_entry(&source.well_known().parse()?);
        let lags = self.runtime.block_on(lag::lags(&source, &id, &s3, &told.changes))?;
        let seconds = start.elapsed().as_secs_f64();
        let used = fleet.cpu_seconds() - working;
        let all = meter::machine_cpu_seconds()? - machine;
        let usage = Usage {
            seconds: rounded(seconds),
            cpu_seconds: rounded(used),
            peak_rss_bytes: fleet.peak_rss_bytes(),
            exit_status: Some(0),
        };
        let mut done = unchecked(usage, 0.0, all);
        self.judge(&mut done, &fleet, &source, &told, &lags)?;
        Ok(done)
    }

    /// A fleet with one of each needed service, whose callbacks the hub finds.
    fn fleet(&self, name: &str, s3: &S3Fixture, hub: &SimulatedHub) -> anyhow::Result<Fleet> {
        let folder = self.work.make(name)?;
        let tokens = folder.join("tokens.yaml");
        let key = folder.join("push-key");
        std::fs::write(&tokens, format!("- {{name: load, role: admin, token: {TOKEN}}}\n"))?;
        std::fs::write(&key, "a key of the load test, of more than 32 bytes\n")?;
        let push =
            format!("push: {{public_url: 'http://push.example/', key: {{file: '{}'}}}}", key.display());
        let gateway = format!("gateway: {{listen: '127.0.0.1:0', tokens: '{}'}}\n{push}", tokens.display());
        let mut fleet =
            Fleet::new(&self.thresher, self.nats.url(), name, FleetStore::S3(s3.clone()), &folder);
        for (service, settings) in
            [("scheduler", &*push), ("fetcher", ""), ("verifier", ""), ("gateway", &*gateway)]
        {
            fleet.start(service, settings)?;
        }
        fleet.until_ready()?;
        let address =
            fleet.logged("gateway", "api.address=").context("the gateway has not said where it listens")?;
        hub.find_callbacks_at(format!("http://{address}"));
        Ok(fleet)
    }

    fn judge(
        &self,
        done: &mut Round,
        fleet: &Fleet,
        source: &SimulatedSource,
        told: &Told,
        lags: &[f64],
    ) -> anyhow::Result<()> {
        let spread = Spread::of(lags.iter().copied()).context("at least one change")?;
        // Rounded up to whole milliseconds, so that no figure is better than measured.
        let whole = |millis: f64| millis.ceil() as u64;
        let median = whole(spread.median);
        done.counted = BTreeMap::from([
            ("median_ms".to_owned(), median),
            ("p95_ms".to_owned(), whole(percentile(lags, 95).context("at least one change")?)),
            ("most_ms".to_owned(), whole(spread.max)),
            ("lost_on_the_way".to_owned(), told.lost),
            ("runs".to_owned(), fleet.counted("scheduler", "thresher_scheduler_runs")?),
        ]);
        let truth: BTreeMap<String, String> = source.expected().map(|each| (each.uri, each.sha256)).collect();
        let mut present = 0;
        let mut right = 0;
        self.thresher.held(&fleet.place(), |held| {
            let is_present = held.state == "present";
            present += u64::from(is_present);
            right += u64::from(is_present && held.sha256.as_ref() == truth.get(&held.uri));
        })?;
        let all = truth.len() as u64;
        done.checks = vec![
            Check::at_most("median lag in ms", MOST_MEDIAN_MILLIS, median),
            Check::equal("changes that are held", self.changes, lags.len() as u64),
            Check::equal("deliveries not taken", 0, told.refused),
            Check::equal("held with the right sha-256 by thresher ls", all, right),
            Check::equal("held by thresher ls", all, present),
        ];
        Ok(())
    }
}
