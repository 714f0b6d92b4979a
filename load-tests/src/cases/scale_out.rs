//! `scale-out`: the same Source is harvested by a fleet with one fetcher and by one with four.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::json;
use simulated_source::{Size, SourceSpec};
use testkit::servers::{NatsServer, SeaweedServer};

use super::{harvested, interleaved};
use crate::check::{self, Check};
use crate::cli::Options;
use crate::fleet::{Fleet, FleetStore};
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::report::{Report, Round};
use crate::source::Source;
use crate::thresher::Thresher;

const RESOURCES: u64 = 6_000;
const BYTES_EACH: u64 = 2048;
const LATENCY: Duration = Duration::from_millis(50);
/// The origin's limit: far more than four fetchers use.
const ORIGIN_LIMIT: u64 = 64;
/// Jobs of one fetcher, so that the fetchers limit the harvest.
const JOBS_EACH: u64 = 4;
/// The rows, by their number of fetchers.
const FLEETS: [(&str, u64); 2] = [("1 fetcher", 1), ("4 fetchers", 4)];

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    nats: NatsServer,
    s3: SeaweedServer,
    source: Source,
    /// The digest of each resource.
    truth: HashMap<String, String>,
    work: WorkFolder,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "scale-out")?;
    let machine = Machine::here(work.path());
    let spec = SourceSpec::default().resources(resources).size(Size::Fixed(BYTES_EACH)).latency(LATENCY);
    let source = Source::simulated(spec)?;
    let Source::Simulated(simulated) = &source else { unreachable!("it was made just now") };
    let truth = simulated.expected().map(|resource| (resource.uri, resource.sha256)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let versions = vec![thresher.version.clone(), source.version()];
    let bench = Bench { thresher, nats, s3, source, truth, work };

    let run = |(_, fetchers), round| {
        Ok(("thresher run submit $SOURCE --watch".to_owned(), bench.run(round, fetchers)?))
    };
    let rows = interleaved(&FLEETS, |(name, _)| name, resources, options, run)?;
    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(BYTES_EACH)),
        ("latency_ms", json!(LATENCY.as_millis())),
        ("requests_at_a_time_at_the_origin", json!(ORIGIN_LIMIT)),
        ("fetcher.max_concurrent_jobs", json!(JOBS_EACH)),
        ("fetcher.max_jobs_per_source", json!(JOBS_EACH)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, NATS, SeaweedFS as S3")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "scale-out", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&["1 fetcher"]))
}

impl Bench {
    /// One harvest into an empty bucket, by a fleet that was started for it.
    fn run(&self, round: usize, fetchers: u64) -> anyhow::Result<Round> {
        let name = format!("round-{round}-with-{fetchers}");
        let folder = self.work.make(&name)?;
        let store = FleetStore::S3(self.s3.fixture());
        let mut fleet = Fleet::new(&self.thresher, self.nats.url(), &name, store, &folder);
        for service in ["scheduler", "verifier"] {
            fleet.start(service, "")?;
        }
        for _ in 0..fetchers {
            // There is one Source, which may have them all.
            let jobs = format!("{{max_concurrent_jobs: {JOBS_EACH}, max_jobs_per_source: {JOBS_EACH}}}");
            fleet.start("fetcher", &format!("fetcher: {jobs}"))?;
        }
        fleet.add(&self.source.list(), &["--concurrency", &ORIGIN_LIMIT.to_string()])?;
        let Source::Simulated(source) = &self.source else { unreachable!("this case has no other") };
        source.reset_requests();

        let mut done = harvested(&fleet, &self.source)?;
        let requests = source.requests();
        done.counted = BTreeMap::from([
            ("resource_requests".to_owned(), requests.resources),
            ("most_requests_at_a_time".to_owned(), requests.max_in_flight),
        ]);
        done.checks = self.checks(&fleet, fetchers, requests.max_in_flight)?;
        done.checks.push(check::resident(done.usage.peak_rss_bytes));
        Ok(done)
    }

    fn checks(&self, fleet: &Fleet, fetchers: u64, most: u64) -> anyhow::Result<Vec<Check>> {
        let mut lines = 0;
        let mut right = 0;
        self.thresher.held(&fleet.place(), |held| {
            lines += 1;
            right += u64::from(held.sha256.is_some() && held.sha256.as_ref() == self.truth.get(&held.uri));
        })?;
        let all = self.truth.len() as u64;
        Ok(vec![
            Check::equal("held with the right sha-256 by thresher ls", all, right),
            Check::equal("lines of thresher ls", all, lines),
            Check::at_most("requests at a time", fetchers * JOBS_EACH, most),
        ])
    }
}
