//! The work of all processes so far, and the figures of a phase between two moments.

use std::collections::BTreeMap;
use std::time::Instant;

use testkit::servers::{NatsServer, SeaweedServer};

use super::super::unchecked;
use crate::cost::Cost;
use crate::fleet::Fleet;
use crate::measure::Usage;
use crate::meter;
use crate::nats_meter::NatsWork;
use crate::report::Round;
use crate::sources_server::{Counts, SourcesServer};
use crate::stats::rounded;

/// The services of the fleet, each in processes of its own.
pub(super) const SERVICES: [&str; 5] = ["scheduler", "fetcher", "unpacker", "verifier", "gateway"];
/// Kinds of requests to the store.
const STORE_KINDS: [&str; 5] = ["store_puts", "store_gets", "store_lists", "store_deletes", "store_copies"];

/// The processes of a round.
#[derive(Debug)]
pub(super) struct Processes<'a> {
    /// The fleet.
    pub(super) fleet: Fleet,
    /// The Sources.
    pub(super) sources: SourcesServer,
    /// Its bus and control store.
    pub(super) nats: &'a NatsServer,
    /// Its store.
    pub(super) s3: &'a SeaweedServer,
}

/// The work so far.
#[derive(Debug)]
pub(super) struct Snapshot {
    at: Instant,
    cost: Cost,
    nats: NatsWork,
    sources: Counts,
    /// Processor time of each process, in seconds, by its name.
    cpu: Vec<(&'static str, f64)>,
    machine_cpu: f64,
}

/// The figures of a phase.
#[derive(Debug)]
pub(super) struct Phase {
    /// How long it took.
    pub(super) seconds: f64,
    /// Processor time of the scheduler, in seconds.
    pub(super) scheduler_cpu: f64,
    /// Requests to the store.
    pub(super) store_requests: u64,
    /// Polls: lists that the Sources have not changed.
    pub(super) looks: u64,
    /// All figures.
    pub(super) figures: BTreeMap<String, u64>,
    fleet_cpu: f64,
    sources_cpu: f64,
    machine_cpu: f64,
}

impl Snapshot {
    /// The work until now.
    pub(super) fn take(of: &mut Processes<'_>) -> anyhow::Result<Self> {
        let mut cpu: Vec<(&'static str, f64)> =
            SERVICES.into_iter().map(|service| (service, of.fleet.cpu_seconds_of(service))).collect();
        cpu.push(("nats", meter::process_cpu_seconds(of.nats.process_id())));
        cpu.push(("seaweedfs", meter::process_cpu_seconds(of.s3.process_id())));
        cpu.push(("sources", of.sources.cpu_seconds()));
        Ok(Self {
            at: Instant::now(),
            cost: Cost::of(&of.fleet)?,
            nats: NatsWork::of(of.nats)?,
            sources: of.sources.counts()?,
            cpu,
            machine_cpu: meter::machine_cpu_seconds()?,
        })
    }

    /// The work since `before`, which was about this many Sources.
    pub(super) fn since(&self, before: &Self, sources: u64) -> Phase {
        let mut figures = BTreeMap::new();
        let costs: Vec<(&str, u64)> = self.cost.counts_since(before.cost).collect();
        let store_requests: u64 =
            costs.iter().filter(|(what, _)| STORE_KINDS.contains(what)).map(|(_, count)| count).sum();
        figures.extend(costs.iter().map(|(what, count)| ((*what).to_owned(), *count)));
        let messages = figures.get("messages").copied().unwrap_or_default();
        let through_nats = (self.nats.messages_in - before.nats.messages_in)
            + (self.nats.messages_out - before.nats.messages_out);
        let of_sources = self.sources.all().since(before.sources.all());
        let of_hundred = |count: u64| (count * 100).div_ceil(sources.max(1));
        for (name, count) in [
            ("store_requests", store_requests),
            ("store_requests_of_100_sources", of_hundred(store_requests)),
            ("messages_of_100_sources", of_hundred(messages)),
            ("nats_messages", through_nats),
            ("nats_messages_of_100_sources", of_hundred(through_nats)),
            ("nats_consumers_at_the_end", self.nats.consumers),
            ("nats_stored_messages_at_the_end", self.nats.stored_messages),
            ("nats_stored_bytes_at_the_end", self.nats.stored_bytes),
            ("requests_at_sources", of_sources.requests),
            ("connections_at_sources", of_sources.connections),
            ("not_modified_by_sources", of_sources.not_modified),
            ("bodies_sent_by_sources", of_sources.bodies),
            ("most_requests_open_at_one_source", self.sources.most_open_at_one),
            ("looks", of_sources.looks),
        ] {
            figures.insert(name.to_owned(), count);
        }
        let cpu = |name: &str| {
            let of =
                |all: &[(&str, f64)]| all.iter().find(|(of, _)| *of == name).map_or(0.0, |(_, cpu)| *cpu);
            (of(&self.cpu) - of(&before.cpu)).max(0.0)
        };
        for (name, _) in &self.cpu {
            figures.insert(format!("cpu_ms_of_{name}"), (cpu(name) * 1e3).round() as u64);
        }
        Phase {
            seconds: self.at.duration_since(before.at).as_secs_f64(),
            scheduler_cpu: cpu("scheduler"),
            store_requests,
            looks: of_sources.looks,
            figures,
            fleet_cpu: SERVICES.into_iter().map(cpu).sum(),
            sources_cpu: cpu("sources"),
            machine_cpu: self.machine_cpu - before.machine_cpu,
        }
    }
}

impl Phase {
    /// The round of the report, before its checks. `seconds` is what the phase is about, which may end before it.
    pub(super) fn round(self, seconds: f64, of: &Processes<'_>) -> Round {
        let usage = Usage {
            seconds: rounded(seconds),
            cpu_seconds: rounded(self.fleet_cpu),
            peak_rss_bytes: of.fleet.peak_rss_bytes(),
            exit_status: Some(0),
        };
        let mut round = unchecked(usage, self.sources_cpu, self.machine_cpu);
        round.counted = self.figures;
        let peaks = SERVICES.map(|service| (service, of.fleet.peak_rss_bytes_of(service)));
        let servers = [
            ("nats", meter::process_peak_rss_bytes(of.nats.process_id())),
            ("seaweedfs", meter::process_peak_rss_bytes(of.s3.process_id())),
            ("sources", of.sources.peak_rss_bytes()),
        ];
        for (name, bytes) in peaks.into_iter().chain(servers) {
            round.counted.insert(format!("peak_bytes_of_{name}"), bytes);
        }
        round
    }
}
