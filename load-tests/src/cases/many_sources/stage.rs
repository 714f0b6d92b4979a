//! The fleet, the Sources and the runs of one round.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Bench;
use super::killer::Killer;
use super::settled::Settled;
use super::snapshot::{Processes, SERVICES};
use crate::api::Api;
use crate::fleet::{Fleet, FleetStore, GATEWAY};
use crate::report::Round;
use crate::sources_server::{Kind, SourcesServer};

/// The least time between two looks at all runs. A look takes at most a twentieth of the time.
const LOOK: Duration = Duration::from_millis(500);
/// How often progress is printed.
const PRINT: Duration = Duration::from_secs(10);
/// The shortest interval of a schedule, in seconds. Below it, Sources are followed.
const SHORTEST_SCHEDULE: u64 = 10;

/// A running round.
pub(super) struct Stage<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) processes: Processes<'a>,
    pub(super) api: Api,
    /// The kind and the ID of each Source.
    pub(super) ids: Vec<(Kind, String)>,
}

impl<'a> Stage<'a> {
    /// Starts a fleet and the Sources, and adds these.
    pub(super) fn start(bench: &'a Bench<'a>, round: usize) -> anyhow::Result<Self> {
        let name = format!("round-{round}");
        let folder = bench.work.make(&name)?;
        let store = FleetStore::S3(bench.s3.fixture());
        let mut fleet = Fleet::new(&bench.thresher, bench.nats.url(), &name, store, &folder);
        for service in SERVICES {
            let processes = if service == "scheduler" { bench.options.schedulers } else { 1 };
            for _ in 0..processes {
                fleet.start(service, if service == "gateway" { GATEWAY } else { "" })?;
            }
        }
        fleet.until_ready()?;
        let address = fleet.logged("gateway", "api.address=").context("the gateway has logged no address")?;
        let api = Api::at(address);
        let sources = SourcesServer::start(bench.population)?;
        let mut ids = Vec::new();
        for number in 0..bench.population.sources {
            ids.push((bench.population.kind(number), sources.id(number)?.to_string()));
        }
        let processes = Processes { fleet, sources, nats: &bench.nats, s3: &bench.s3 };
        let stage = Self { bench, processes, api, ids };
        let began = Instant::now();
        stage.put_sources(None)?;
        eprintln!("{} Sources were added in {:.1} s", stage.ids.len(), began.elapsed().as_secs_f64());
        Ok(stage)
    }

    /// Looks at all runs until those of one kind are over, or the limit is reached.
    pub(super) fn until_over(
        &mut self,
        kind: Kind,
        since: Timestamp,
        limit: Duration,
        mut killer: Option<&mut Killer>,
    ) -> anyhow::Result<Settled> {
        let began = Instant::now();
        let mut printed = began;
        loop {
            let looked = Instant::now();
            let settled = self.settled(since)?;
            let is_over = settled.is_over(kind);
            if is_over || printed.elapsed() >= PRINT {
                printed = Instant::now();
                eprintln!("{:.0} s: {}", began.elapsed().as_secs_f64(), settled.line());
            }
            if is_over || began.elapsed() >= limit {
                return Ok(settled);
            }
            let next = Instant::now() + LOOK.max(looked.elapsed() * 20);
            while Instant::now() < next {
                if let Some(killer) = &mut killer {
                    killer.turn(&mut self.processes.fleet)?;
                }
                self.wait(LOOK / 5);
            }
        }
    }

    /// The last run of each Source.
    pub(super) fn settled(&self, since: Timestamp) -> anyhow::Result<Settled> {
        let mut runs = self.api.runs()?;
        let sources = self.ids.iter().map(|(kind, id)| (*kind, runs.remove(id))).collect();
        Ok(Settled { since, sources })
    }

    /// Notes how many Sources each scheduler has.
    pub(super) fn note_shares(&self, done: &mut Round) -> anyhow::Result<()> {
        let shares = self.processes.fleet.gauges("scheduler", "scheduler_sources")?;
        let least = shares.iter().min().copied().unwrap_or_default();
        let most = shares.iter().max().copied().unwrap_or_default();
        done.counted.insert("least_sources_of_a_scheduler".to_owned(), least);
        done.counted.insert("most_sources_of_a_scheduler".to_owned(), most);
        Ok(())
    }

    /// Adds all Sources, or gives them another interval.
    pub(super) fn put_sources(&self, every: Option<u64>) -> anyhow::Result<()> {
        let sources = &self.processes.sources;
        self.api
            .put_sources((0..self.bench.population.sources).map(|number| spec(&sources.entry(number), every)))
    }

    pub(super) fn healthy(&self) -> impl Iterator<Item = &String> {
        self.ids.iter().filter(|(kind, _)| *kind == Kind::Ok).map(|(_, id)| id)
    }

    pub(super) fn wait(&self, time: Duration) {
        self.bench.runtime.block_on(async { tokio::time::sleep(time).await });
    }
}

/// The spec of a Source, with the interval of its polls in seconds.
fn spec(entry: &str, every: Option<u64>) -> Value {
    match every {
        None => json!({"entry": entry}),
        Some(every) if every < SHORTEST_SCHEDULE => {
            json!({"entry": entry, "follow": {"min_seconds": every, "max_seconds": every}})
        }
        Some(every) => json!({"entry": entry, "schedule": {"times": {"every_seconds": every}}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_intervals_are_followed_because_no_schedule_is_so_short() {
        let of = |every| spec("http://127.1.0.1:1/", every).to_string();
        assert!(of(Some(9)).contains("\"min_seconds\":9") && of(Some(10)).contains("\"every_seconds\":10"));
        for every in [None, Some(9), Some(10)] {
            let read: control::Spec = serde_json::from_value(spec("http://127.1.0.1:1/", every)).unwrap();
            control::SourceSpec::from(read).check().unwrap();
        }
    }
}
