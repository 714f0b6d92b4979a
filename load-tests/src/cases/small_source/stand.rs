//! A fleet whose store is behind a proxy, and one run of a Source in it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::json;
use testkit::servers::{NatsServer, S3Fixture, SeaweedServer};
use tokio::runtime::Runtime;

use super::super::unchecked;
use crate::api::{Api, Condition, RunSeen};
use crate::check::Check;
use crate::cost::Cost;
use crate::fleet::{Fleet, FleetStore, GATEWAY};
use crate::measure::Usage;
use crate::meter;
use crate::report::Round;
use crate::sources_server::{SourcesServer, sha256};
use crate::stats::rounded;
use crate::store_proxy::{Passed, StoreProxy, counted};
use crate::thresher::Thresher;

/// How long requests are still counted after the end of a run: its catalog may close later.
pub(super) const COUNTED_AFTER: Duration = Duration::from_secs(2);
/// The longest run.
const LIMIT: Duration = Duration::from_secs(300);
/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(10);
const SERVICES: [(&str, &str); 5] =
    [("scheduler", ""), ("fetcher", ""), ("unpacker", ""), ("verifier", ""), ("gateway", GATEWAY)];
/// The requests of one service to the store, by its own count.
const OPERATIONS: &str = "thresher_store_operations";

/// A fleet, and the proxy before its store.
pub(super) struct Stand<'a> {
    fleet: Fleet,
    proxy: StoreProxy,
    api: Api,
    runtime: &'a Runtime,
}

/// The work so far.
struct Before {
    since: Timestamp,
    passed: usize,
    cost: Cost,
    by_scheduler: u64,
    requests: u64,
    bodies: u64,
    fleet_cpu: f64,
    sources_cpu: f64,
    machine_cpu: f64,
}

impl<'a> Stand<'a> {
    /// Starts a proxy with this delay, and a fleet behind it.
    pub(super) fn start(
        thresher: &Thresher,
        runtime: &'a Runtime,
        nats: &NatsServer,
        s3: &SeaweedServer,
        delay: Duration,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let proxy = runtime.block_on(StoreProxy::start(s3.endpoint(), delay))?;
        let store = FleetStore::S3(S3Fixture { endpoint: proxy.endpoint(), ..s3.fixture() });
        let namespace = format!("delay-{}", delay.as_millis());
        let mut fleet = Fleet::new(thresher, nats.url(), &namespace, store, folder);
        for (service, more) in SERVICES {
            fleet.start(service, more)?;
        }
        fleet.until_ready()?;
        let address = fleet.logged("gateway", "api.address=").context("the gateway has logged no address")?;
        Ok(Self { fleet, proxy, api: Api::at(address), runtime })
    }

    /// Adds Sources.
    pub(super) fn add(&self, server: &SourcesServer, numbers: Range<u32>) -> anyhow::Result<()> {
        self.api.put_sources(numbers.map(|number| json!({"entry": server.entry(number)})))
    }

    /// Runs a Source, and measures from its submission to the end of the run.
    pub(super) fn measured(&mut self, server: &mut SourcesServer, number: u32) -> anyhow::Result<Round> {
        let id = server.id(number)?.to_string();
        let before = self.before(server)?;
        self.api.submit(std::slice::from_ref(&id))?;
        let run = self.ended(&id, before.since)?;
        self.runtime.block_on(async { tokio::time::sleep(COUNTED_AFTER).await });
        self.round(&before, &run, server)
    }

    /// Every resource is stored with the right digest, of so many resources, the first of which have changed.
    pub(super) fn check_stored(
        &self,
        done: &mut Round,
        thresher: &Thresher,
        server: &SourcesServer,
        number: u32,
        (resources, changed): (u32, u32),
    ) -> anyhow::Result<()> {
        let mut right = 0;
        let version = |resource| u32::from(resource < changed);
        let truth: BTreeSet<(String, String)> = (0..resources)
            .map(|resource| (server.uri(number, resource), sha256(number, resource, version(resource))))
            .collect();
        thresher.held_of(&self.fleet.place(), server.id(number)?.as_str(), |held| {
            let pair = held.sha256.map(|sha256| (held.uri, sha256));
            right += u64::from(pair.is_some_and(|pair| truth.contains(&pair)));
        })?;
        done.checks.push(Check::equal("stored with the right sha-256", truth.len() as u64, right));
        Ok(())
    }

    fn before(&self, server: &mut SourcesServer) -> anyhow::Result<Before> {
        let counts = server.counts()?.all();
        Ok(Before {
            since: Timestamp::now(),
            passed: self.proxy.count(),
            cost: Cost::of(&self.fleet)?,
            by_scheduler: self.fleet.counted("scheduler", OPERATIONS)?,
            requests: counts.requests,
            bodies: counts.bodies,
            fleet_cpu: self.fleet.cpu_seconds(),
            sources_cpu: server.cpu_seconds(),
            machine_cpu: meter::machine_cpu_seconds()?,
        })
    }

    /// The run of a Source that was submitted, once it has ended.
    fn ended(&self, id: &str, since: Timestamp) -> anyhow::Result<RunSeen> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            let run = self.api.runs()?.remove(id).filter(|run| run.requested_at >= since);
            if let Some(run) = run.filter(|run| run.condition().is_over()) {
                return Ok(run);
            }
            self.runtime.block_on(async { tokio::time::sleep(LOOK).await });
        }
        anyhow::bail!("the run of {id} did not end within {} s", LIMIT.as_secs())
    }

    fn round(&self, before: &Before, run: &RunSeen, server: &mut SourcesServer) -> anyhow::Result<Round> {
        let started = run.started_at.unwrap_or(run.requested_at);
        let finished = run.finished_at.context("an ended run has no end")?;
        let seconds = finished.duration_since(run.requested_at).as_secs_f64();
        let passed = self.proxy.after(before.passed);
        let counts = server.counts()?.all();
        let millis = |from: Timestamp, to: Timestamp| to.duration_since(from).as_millis().max(0) as u64;
        let usage = Usage {
            seconds: rounded(seconds),
            cpu_seconds: rounded(self.fleet.cpu_seconds() - before.fleet_cpu),
            peak_rss_bytes: self.fleet.peak_rss_bytes(),
            exit_status: Some(0),
        };
        let machine_cpu = meter::machine_cpu_seconds()? - before.machine_cpu;
        let mut done = unchecked(usage, server.cpu_seconds() - before.sources_cpu, machine_cpu);
        done.counted = counted(&passed);
        let messages = Cost::of(&self.fleet)?.counts_since(before.cost);
        done.counted.extend(
            messages
                .filter(|(what, _)| what.starts_with("messages"))
                .map(|(what, count)| (what.to_owned(), count)),
        );
        let by_scheduler = self.fleet.counted("scheduler", OPERATIONS)? - before.by_scheduler;
        for (name, count) in [
            ("resources", run.resources()),
            ("submitted_to_begun_ms", millis(run.requested_at, started)),
            ("begun_to_finished_ms", millis(started, finished)),
            ("catalog_ms", catalog_millis(&passed)),
            ("store_requests_by_the_scheduler", by_scheduler),
            ("requests_at_the_source", counts.requests - before.requests),
            ("bodies_sent_by_the_source", counts.bodies - before.bodies),
        ] {
            done.counted.insert(name.to_owned(), count);
        }
        done.checks = vec![Check::holds("in sync", run.condition() == Condition::InSync)];
        Ok(done)
    }
}

/// From the first to the last request about a catalog, in milliseconds: open, plan, close.
fn catalog_millis(passed: &[Passed]) -> u64 {
    let mut of_catalog = passed.iter().filter(|passed| passed.is_of_catalog()).map(|passed| passed.at);
    let first = of_catalog.next();
    let last = of_catalog.next_back().or(first);
    let time = first.zip(last).map(|(first, last)| last.duration_since(first));
    u64::try_from(time.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(after: u64, method: &'static str, part: &str) -> Passed {
        // Far enough from any clock's beginning.
        let at = Instant::now() + Duration::from_secs(60) + Duration::from_millis(after);
        Passed { at, method, part: part.to_owned() }
    }

    #[test]
    fn the_time_of_the_catalog_is_between_its_first_and_its_last_request() {
        let other = passed(0, "get", "packs");
        let at = other.at;
        let of = |after, part: &str| Passed {
            at: at + Duration::from_millis(after),
            method: "get",
            part: part.to_owned(),
        };
        let all = [other, of(10, "catalog"), of(20, "packs"), of(35, "catalog_wal"), of(90, "packs")];
        assert_eq!(catalog_millis(&all), 25);
        assert_eq!((catalog_millis(&all[..2]), catalog_millis(&all[..1])), (0, 0));
    }
}
