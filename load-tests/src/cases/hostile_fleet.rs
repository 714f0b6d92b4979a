//! `hostile-fleet`: twenty honest Sources are harvested alone, and together with Sources that try to block or
//! overload a fleet.

mod hostile;
mod server;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use simulated_source::{SimulatedSource, Size, SourceSpec};
use testkit::servers::{NatsServer, SeaweedServer};

use self::hostile::{DRIPPING, Hostile};
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
use crate::stats::rounded;
use crate::thresher::Thresher;

/// Honest Sources, and the resources of each.
const HONEST: usize = 20;
const RESOURCES_EACH: u64 = 500;
const BYTES_EACH: u64 = 2048;
/// The latency of an honest Source, as across a network.
const LATENCY: Duration = Duration::from_millis(20);
/// The largest body that the fetcher accepts here: an endless one ends there.
const MOST_BODY_BYTES: u64 = 64 << 20;
/// How long to wait until each dripping origin sends a body.
const PATIENCE: Duration = Duration::from_secs(60);
/// The memory that a process may use beyond its stated budget: the limit of the runbook and the alert.
const BESIDE_STATED_BYTES: u64 = 200_000_000;
const SERVICES: [&str; 4] = ["scheduler", "fetcher", "unpacker", "verifier"];

/// The rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// The honest Sources alone.
    Nothing,
    /// The hostile ones were submitted before, and are still running at the end.
    Hostile,
}

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    nats: NatsServer,
    s3: SeaweedServer,
    runtime: tokio::runtime::Runtime,
    work: WorkFolder,
    resources: u64,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES_EACH);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "hostile-fleet")?;
    let machine = Machine::here(work.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let versions = vec![thresher.version.clone()];
    let bench = Bench { thresher, nats, s3, runtime, work, resources };

    let rows = [Beside::Nothing, Beside::Hostile];
    let run = |beside, round| {
        let done = bench.run(beside, round)?;
        Ok(("thresher run submit $SOURCE, of each honest Source".to_owned(), done))
    };
    let rows = interleaved(&rows, Beside::name, resources * HONEST as u64, options, run)?;
    let setup = BTreeMap::from([
        ("honest_sources", json!(HONEST)),
        ("resources_each", json!(resources)),
        ("bytes_each", json!(BYTES_EACH)),
        ("latency_ms", json!(LATENCY.as_millis())),
        ("most_body_bytes", json!(MOST_BODY_BYTES)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, NATS, SeaweedFS as S3")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "hostile-fleet", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[Beside::Nothing.name()]))
}

impl Beside {
    /// The name of the row.
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "honest Sources alone",
            Self::Hostile => "beside hostile Sources",
        }
    }
}

impl Bench {
    /// One harvest of all honest Sources, by a fleet that was started for it.
    fn run(&self, beside: Beside, round: usize) -> anyhow::Result<Round> {
        let name = format!("round-{round}-{}", beside.name().replace(' ', "-"));
        let folder = self.work.make(&name)?;
        let store = FleetStore::S3(self.s3.fixture());
        let mut fleet = Fleet::new(&self.thresher, self.nats.url(), &name, store, &folder);
        for service in SERVICES {
            let fetcher = format!("fetcher: {{jobs: {{max_body_bytes: {MOST_BODY_BYTES}}}}}");
            fleet.start(service, if service == "fetcher" { &fetcher } else { "" })?;
        }
        fleet.until_ready()?;
        let honest = self.honest()?;
        for source in &honest {
            fleet.add(&source.resource_list(), &[])?;
        }
        let hostile = match beside {
            Beside::Nothing => None,
            Beside::Hostile => Some(self.start_hostile(&fleet)?),
        };

        make_ready();
        let machine = meter::machine_cpu_seconds()?;
        let working = fleet.cpu_seconds();
        let start = Instant::now();
        for source in &honest {
            fleet.submit(&source.resource_list())?;
        }
        for source in &honest {
            fleet.watch(&source.resource_list())?;
        }
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
        done.checks = self.checks(&fleet, &honest)?;
        if let Some(hostile) = hostile {
            done.counted.insert("bodies_that_dripped".to_owned(), hostile.drips());
        }
        Ok(done)
    }

    fn honest(&self) -> anyhow::Result<Vec<SimulatedSource>> {
        let spec =
            || SourceSpec::default().resources(self.resources).size(Size::Fixed(BYTES_EACH)).latency(LATENCY);
        (0..HONEST).map(|_| Ok(self.runtime.block_on(SimulatedSource::start(spec()))?)).collect()
    }

    /// Submits the hostile Sources, and waits until the slowest of them occupy as much as they can.
    fn start_hostile(&self, fleet: &Fleet) -> anyhow::Result<Hostile> {
        let hostile = self.runtime.block_on(Hostile::start())?;
        for list in &hostile.lists {
            fleet.add(list, &[])?;
        }
        for list in &hostile.lists {
            fleet.submit(list)?;
        }
        let dripping = async {
            while hostile.drips() < u64::from(DRIPPING) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, dripping).await });
        waited.context("the dripping origins were not asked in time")?;
        Ok(hostile)
    }

    /// Each honest resource is stored, and each process stays within its stated memory.
    fn checks(&self, fleet: &Fleet, honest: &[SimulatedSource]) -> anyhow::Result<Vec<Check>> {
        let mut right = 0;
        let truth: BTreeMap<String, String> =
            honest.iter().flat_map(SimulatedSource::expected).map(|each| (each.uri, each.sha256)).collect();
        self.thresher.held(&fleet.place(), |held| {
            right += u64::from(held.sha256.is_some() && held.sha256.as_ref() == truth.get(&held.uri));
        })?;
        let mut checks = vec![Check::equal("stored with the right sha-256", truth.len() as u64, right)];
        for service in SERVICES {
            let stated = fleet.gauge(service, "memory_budget_bytes")?;
            let what = format!("peak resident bytes of the {service}");
            checks.push(Check::at_most(
                &what,
                stated + BESIDE_STATED_BYTES,
                fleet.peak_rss_bytes_of(service),
            ));
        }
        Ok(checks)
    }
}
