//! `timegate`: a gateway leads to versions of a moment, and lists versions, of a Source with 1,000,000 resources of
//! three versions each.

mod asker;
mod filled;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::servers::{NatsServer, SeaweedServer};

use self::asker::Asker;
use self::filled::{Filled, VERSIONS};
use super::{interleaved, of_fleet};
use crate::answer::Answer;
use crate::check::Check;
use crate::cli::Options;
use crate::fleet::{Fleet, FleetStore};
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::report::{Report, Round};
use crate::stats::percentile;
use crate::thresher::Thresher;

const RESOURCES: u64 = 1_000_000;
/// The longest 99th percentile of a round: 50 ms.
const MOST_P99_MICROS: u64 = 50_000;
/// Requests of a row in a round.
const REQUESTS: u64 = 2_000;
/// Answers of a round that are compared with `thresher cat --at`.
const SAMPLED: u64 = 20;
const NAMESPACE: &str = "timegate";
const GATE: &str = "TimeGate";
const MAP: &str = "TimeMap";

/// State that every round needs.
struct Bench {
    thresher: Thresher,
    fleet: Fleet,
    asker: Asker,
    filled: Filled,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES).max(1);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "timegate")?;
    let machine = Machine::here(work.path());
    // The runtime of the servers, and of all data that is written.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let store = FleetStore::S3(s3.fixture());
    let mut fleet = Fleet::new(&thresher, nats.url(), NAMESPACE, store, &work.make("fleet")?);
    eprintln!("filling in {resources} resources of {VERSIONS} versions");
    let place = fleet.place();
    let filled = runtime.block_on(filled::fill(nats.url(), NAMESPACE, &place, resources))?;
    let settings = "gateway: {listen: '127.0.0.1:0', allow_anonymous: true, requests_per_second: 1000000}";
    fleet.start("gateway", settings)?;
    fleet.until_ready()?;
    let address =
        fleet.logged("gateway", "api.address=").context("the gateway has not said where it listens")?;
    let versions = vec![thresher.version.clone()];
    let bench = Bench { thresher, fleet, asker: Asker::new(address), filled };

    let rows = interleaved(
        &[GATE, MAP],
        |name| name,
        REQUESTS,
        options,
        |name, round| {
            let done = if name == GATE { bench.gates(round)? } else { bench.maps(round)? };
            Ok((format!("GET /v1/sources/…/{}/…", name.to_lowercase()), done))
        },
    )?;
    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("versions_of_each", json!(VERSIONS)),
        ("requests", json!(REQUESTS)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, a connection for each request; NATS, SeaweedFS as S3")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "timegate", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[]))
}

impl Bench {
    /// Asks TimeGates for versions of all times, and compares some answers with what the store has.
    fn gates(&self, round: usize) -> anyhow::Result<Round> {
        let mut wrong = 0;
        let mut done = self.measured(|number| {
            let (resource, version) = self.filled.chosen(number, round);
            let headers = format!("Accept-Datetime: {}\r\n", self.filled.asked_http(version));
            let answer = self.asker.get(&self.filled.gate(resource), &headers)?;
            ensure!(answer.status == 302, "a TimeGate answered with {}", answer.status);
            let place = answer.header("location").context("a TimeGate leads nowhere")?;
            wrong += u64::from(!place.ends_with(&format!("at={}", self.filled.begins(version))));
            Ok(answer)
        })?;
        let mut different = 0;
        for number in 0..SAMPLED {
            let (resource, version) = self.filled.chosen(number * (REQUESTS / SAMPLED), round);
            let headers = format!("Accept-Datetime: {}\r\n", self.filled.asked_http(version));
            let gate = self.asker.get(&self.filled.gate(resource), &headers)?;
            let memento = self.asker.get(gate.header("location").unwrap_or_default(), "")?;
            different += u64::from(memento.body != self.stored_at(resource, version)?);
        }
        done.checks.push(Check::equal("answers that lead to another version", 0, wrong));
        done.checks.push(Check::equal(
            &format!("versions of {SAMPLED} sampled answers that differ from those of cat --at"),
            0,
            different,
        ));
        Ok(done)
    }

    /// Asks for TimeMaps.
    fn maps(&self, round: usize) -> anyhow::Result<Round> {
        let mut incomplete = 0;
        let mut done = self.measured(|number| {
            let (resource, _) = self.filled.chosen(number, round);
            let answer = self.asker.get(&self.filled.map(resource), "")?;
            ensure!(answer.status == 200, "a TimeMap was answered with {}", answer.status);
            let text = String::from_utf8_lossy(&answer.body);
            incomplete += u64::from(text.matches("memento\"").count() != VERSIONS);
            Ok(answer)
        })?;
        done.checks.push(Check::equal("TimeMaps without each version", 0, incomplete));
        Ok(done)
    }

    /// What `thresher cat --at` prints.
    fn stored_at(&self, resource: u64, version: usize) -> anyhow::Result<Vec<u8>> {
        let place = self.fleet.place();
        let mut command: Command = self.thresher.command();
        command.args(["cat", &self.filled.uri(resource), "--into", &place.into]);
        command.args(["--at", &self.filled.asked(version).to_string()]).envs(place.environment);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    }

    /// Measures requests one after another, each from its first byte to the last of the answer.
    fn measured(&self, mut ask: impl FnMut(u64) -> anyhow::Result<Answer>) -> anyhow::Result<Round> {
        let mut micros = Vec::with_capacity(REQUESTS as usize);
        let mut done = of_fleet(&self.fleet, || {
            for number in 0..REQUESTS {
                let asked = Instant::now();
                ask(number)?;
                micros.push(asked.elapsed().as_secs_f64() * 1e6);
            }
            Ok(())
        })?;
        // Rounded up, so that no figure is better than measured.
        let told = |percent| percentile(&micros, percent).map_or(0, |micros| micros.ceil() as u64);
        done.checks.push(Check::at_most("99th percentile in µs", MOST_P99_MICROS, told(99)));
        done.counted = BTreeMap::from([("p50_us".to_owned(), told(50)), ("p99_us".to_owned(), told(99))]);
        Ok(done)
    }
}
