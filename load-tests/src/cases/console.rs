//! `console`: requests every page of the console repeatedly, from a fleet with thousands of Sources, one of
//! which has millions of resources.

mod filled;
mod visitor;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::servers::{NatsServer, SeaweedServer};

use super::{interleaved, of_fleet};
use crate::check::Check;
use crate::cli::ConsoleOptions;
use crate::fleet::{Fleet, FleetStore};
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::report::{Report, Round};
use crate::stats::Spread;
use crate::thresher::Thresher;
use filled::Filled;
use visitor::Visitor;

const SOURCES: u64 = 2_000;
const RESOURCES: u64 = 5_000_000;
const NAMESPACE: &str = "console";
/// The promise: the median of each page is below this.
const MOST_MEDIAN_MILLIS: u64 = 300;
const TOKEN: &str = "a token of the load test";

/// State that every round needs.
struct Bench {
    fleet: Fleet,
    visitor: Visitor,
    filled: Filled,
    requests: usize,
}

/// Runs the case.
pub(crate) fn run(options: &ConsoleOptions) -> anyhow::Result<Report> {
    let resources = options.common.resources.unwrap_or(RESOURCES);
    let sources = options.sources.unwrap_or(SOURCES);
    let thresher = Thresher::get(&options.common)?;
    let work = WorkFolder::new(&options.common, "console")?;
    let machine = Machine::here(work.path());
    // The runtime of the servers, and of all data that is written.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let s3 = s3_and_fixture(s3);
    let store = FleetStore::S3(s3.1.clone());
    let mut fleet = Fleet::new(&thresher, nats.url(), NAMESPACE, store, &work.make("fleet")?);
    eprintln!("filling in {sources} Sources, one of them with {resources} resources");
    let filled = runtime.block_on(filled::fill(nats.url(), NAMESPACE, &s3.1, sources, resources))?;

    let tokens = work.path().join("tokens.yaml");
    std::fs::write(&tokens, format!("- {{name: load, role: admin, token: {TOKEN}}}\n"))?;
    let settings = format!(
        "gateway: {{listen: '127.0.0.1:0', tokens: '{}', requests_per_second: 1000000}}",
        tokens.display()
    );
    fleet.start("gateway", &settings)?;
    fleet.until_ready()?;
    let address =
        fleet.logged("gateway", "api.address=").context("the gateway has not said where it listens")?;
    let visitor = Visitor::signed_in(&address, TOKEN)?;
    let versions = vec![thresher.version.clone()];
    let bench = Bench { fleet, visitor, filled, requests: options.requests.get() };

    let pages = bench.filled.pages();
    let places: Vec<usize> = (0..pages.len()).collect();
    let requests = bench.requests as u64;
    let rows = interleaved(
        &places,
        |place| pages[place].0,
        requests,
        &options.common,
        |place, _| {
            let path = &pages[place].1;
            Ok((format!("GET {path}"), bench.run(path)?))
        },
    )?;
    let setup = BTreeMap::from([
        ("sources", json!(sources)),
        ("resources", json!(resources)),
        ("requests_of_each_page", json!(bench.requests)),
        ("rounds", json!(options.common.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, a connection for each request; NATS, SeaweedFS as S3")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "console", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[]))
}

/// A server, and a bucket on it.
fn s3_and_fixture(s3: SeaweedServer) -> (SeaweedServer, testkit::servers::S3Fixture) {
    let fixture = s3.fixture();
    (s3, fixture)
}

impl Bench {
    /// The same page, repeatedly, each time from its head to its last byte.
    fn run(&self, path: &str) -> anyhow::Result<Round> {
        let mut millis = Vec::with_capacity(self.requests);
        let mut bytes = 0;
        let mut done = of_fleet(&self.fleet, || {
            for _ in 0..self.requests {
                let asked = Instant::now();
                let page = self.visitor.get(path)?;
                millis.push(asked.elapsed().as_secs_f64() * 1e3);
                ensure!(page.status == 200, "{path} is answered with {}", page.status);
                bytes = page.bytes;
            }
            Ok(())
        })?;
        let spread = Spread::of(millis).context("at least one request")?;
        // Rounded up to whole milliseconds, so that no figure is better than measured.
        let told = |millis: f64| millis.ceil() as u64;
        done.counted = BTreeMap::from([
            ("median_ms".to_owned(), told(spread.median)),
            ("most_ms".to_owned(), told(spread.max)),
            ("bytes".to_owned(), bytes),
        ]);
        done.checks =
            vec![Check::at_most("median of the page in ms", MOST_MEDIAN_MILLIS, told(spread.median))];
        Ok(done)
    }
}
