//! `small-files-fleet`: 20,000 resources of 2 KiB, harvested in one process and by a fleet, with packs and without.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::json;
use simulated_source::Expected;
use testkit::servers::{NatsServer, S3Fixture, SeaweedServer};
use tokio::runtime::Runtime;

use super::small_files::serving;
use super::{harvested, interleaved, measured};
use crate::check;
use crate::cli::Options;
use crate::cost::Cost;
use crate::fleet::{Fleet, FleetStore};
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::place::Place;
use crate::process::CommandLine;
use crate::report::{Report, Round};
use crate::source::Source;
use crate::store_proxy::{StoreProxy, counted};
use crate::thresher::{Outcome, Thresher, View};

const RESOURCES: u64 = 20_000;
const BYTES_EACH: u64 = 2048;
/// Concurrent requests to the origin, in every row.
const AT_ONCE: u16 = 16;
/// How long a proxy still counts after the end of a run.
const COUNTED_AFTER: Duration = Duration::from_secs(2);
/// Resources whose bytes are read at the end.
const SAMPLE: usize = 10;

/// The programs that harvest, and their targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One process, into a directory.
    Directory,
    /// One process, into a bucket.
    Bucket,
    /// A bare loop that writes packs and records to a bucket: the limit.
    Bare,
    /// One process of each service, into a bucket.
    Fleet {
        /// Whether small bodies are stored in packs; otherwise each is an object of its own.
        has_packs: bool,
        /// A proxy before the store that counts requests, and begins each response so many milliseconds later.
        proxy: Option<u64>,
    },
}

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    nats: NatsServer,
    s3: SeaweedServer,
    source: Source,
    expected: Vec<Expected>,
    work: WorkFolder,
    /// Runs the proxies.
    runtime: Runtime,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "small-files-fleet")?;
    let machine = Machine::here(work.path());
    let (source, expected) = serving::start(options.source, &work, resources, BYTES_EACH)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let versions = vec![thresher.version.clone(), source.version()];
    let bench = Bench { thresher, nats, s3, source, expected, work, runtime };

    let run = |way, round| bench.run(way, round);
    let rows = interleaved(&Way::ALL, Way::name, resources, options, run)?;
    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(BYTES_EACH)),
        ("declared", json!("sha-256, length, lastmod")),
        ("requests_at_a_time_at_the_origin", json!(AT_ONCE)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, NATS, SeaweedFS as S3")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "small-files-fleet", finished_at, machine, setup, versions, rows };
    let others = Way::ALL.into_iter().filter(|way| *way != Way::Fleet { has_packs: true, proxy: None });
    Ok(report.summed_up(&others.map(Way::name).collect::<Vec<_>>()))
}

impl Way {
    /// All, in the order of the first round.
    const ALL: [Self; 7] = [
        Self::Directory,
        Self::Bucket,
        Self::Bare,
        Self::Fleet { has_packs: true, proxy: None },
        Self::Fleet { has_packs: true, proxy: Some(0) },
        Self::Fleet { has_packs: true, proxy: Some(20) },
        Self::Fleet { has_packs: false, proxy: None },
    ];

    /// Its name in the report.
    fn name(self) -> &'static str {
        match self {
            Self::Directory => "one process, directory",
            Self::Bucket => "one process, S3",
            Self::Bare => "bare loop, packs and records, S3",
            Self::Fleet { has_packs: true, proxy: None } => "fleet, packs",
            Self::Fleet { has_packs: true, proxy: Some(0) } => "fleet, packs, requests counted",
            Self::Fleet { has_packs: true, proxy: Some(_) } => "fleet, packs, 20 ms a request",
            Self::Fleet { has_packs: false, .. } => "fleet, one object each",
        }
    }
}

impl Bench {
    /// One harvest into an empty place, and the checks of its work.
    fn run(&self, way: Way, round: usize) -> anyhow::Result<(String, Round)> {
        let name = format!("round-{round}-{}", way.name().replace(", ", "-").replace(' ', "-"));
        let folder = self.work.make(&name)?;
        let before = self.source.requests()?;
        let (command, mut done, place) = match way {
            Way::Directory => {
                let into = Place::directory(&folder.join("into"));
                let (command, done) = self.sync(&into, &folder)?;
                (command, done, into)
            }
            Way::Bucket => {
                let into = Place::bucket(&self.s3.fixture());
                let (command, done) = self.sync(&into, &folder)?;
                (command.replace(&into.into, "$BUCKET"), done, into)
            }
            Way::Bare => {
                let into = Place::bucket(&self.s3.fixture());
                let urls: String =
                    self.expected.iter().map(|resource| format!("{}\n", resource.uri)).collect();
                fs::write(folder.join("urls.txt"), urls)?;
                let command = CommandLine::new(std::env::current_exe()?);
                let command = command.args(["get-all", "urls.txt", "--at-once", &AT_ONCE.to_string()]);
                let command = command.args(["--keep", &into.into]).envs(&into.environment);
                let (ended, done) = measured(&command, &folder, Some(&self.source))?;
                ended.succeeded()?;
                (command.shown(&folder).replace(&into.into, "$BUCKET"), done, into)
            }
            Way::Fleet { has_packs, proxy } => {
                let s3 = self.s3.fixture();
                let proxy = proxy.map(|delay| self.proxy(delay)).transpose()?;
                let endpoint = proxy.as_ref().map_or_else(|| s3.endpoint.clone(), StoreProxy::endpoint);
                let store = FleetStore::S3(S3Fixture { endpoint, ..s3.clone() });
                let mut fleet = Fleet::new(&self.thresher, self.nats.url(), &name, store, &folder);
                for service in ["scheduler", "unpacker", "verifier"] {
                    fleet.start(service, "")?;
                }
                let objects = "fetcher: {jobs: {pack_threshold_bytes: 0}}";
                fleet.start("fetcher", if has_packs { "" } else { objects })?;
                fleet.add(&self.source.list(), &["--concurrency", &AT_ONCE.to_string()])?;
                fleet.until_ready()?;
                let before = Cost::of(&fleet)?;
                let passed = proxy.as_ref().map_or(0, StoreProxy::count);
                let mut done = harvested(&fleet, &self.source)?;
                let cost = Cost::of(&fleet)?.since(before, self.expected.len() as u64);
                done.counted.extend(cost);
                if let Some(proxy) = &proxy {
                    // The catalog closes after the end of the run.
                    self.runtime.block_on(async { tokio::time::sleep(COUNTED_AFTER).await });
                    done.counted.extend(counted(&proxy.after(passed)));
                }
                done.checks.push(check::resident(done.usage.peak_rss_bytes));
                // The checks go to the store itself.
                ("thresher run submit $SOURCE --watch".to_owned(), done, Place::bucket(&s3))
            }
        };
        done.counted.insert("requests_seen_by_source".to_owned(), self.source.requests()? - before);
        done.checks.extend(check::harvest(&self.thresher, &place, &self.expected, SAMPLE)?);
        Ok((command, done))
    }

    fn proxy(&self, delay: u64) -> anyhow::Result<StoreProxy> {
        self.runtime.block_on(StoreProxy::start(self.s3.endpoint(), Duration::from_millis(delay)))
    }

    fn sync(&self, into: &Place, folder: &std::path::Path) -> anyhow::Result<(String, Round)> {
        let command = self.thresher.sync_to(into, &self.source.list(), View::None, Some(AT_ONCE));
        let (ended, mut done) = measured(&command, folder, Some(&self.source))?;
        done.checks = check::synced(&Outcome::of(&ended)?, self.expected.len() as u64);
        done.checks.push(check::resident(ended.usage.peak_rss_bytes));
        Ok((command.shown(folder).replace(&self.source.base(), "$SOURCE"), done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut names = Way::ALL.map(Way::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Way::ALL.len());
    }
}
