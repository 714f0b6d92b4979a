//! `many-sources`: a fleet harvests thousands of small Sources, some of which are dead or slow, and polls them
//! afterwards.

mod killer;
mod round;
mod settled;
mod snapshot;
mod stage;
mod stored;

use std::collections::BTreeMap;

use serde_json::json;
use testkit::servers::{NatsServer, SeaweedServer};

use self::round::{Rounds, play};
use crate::cli::ManySourcesOptions;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::report::{Report, Row};
use crate::sources_server::{Kind, Population};
use crate::thresher::Thresher;

/// State that every round needs.
struct Bench<'a> {
    options: &'a ManySourcesOptions,
    population: Population,
    thresher: Thresher,
    nats: NatsServer,
    s3: SeaweedServer,
    runtime: tokio::runtime::Runtime,
    work: WorkFolder,
}

/// Runs the case.
pub(crate) fn run(options: &ManySourcesOptions) -> anyhow::Result<Report> {
    options.common.only_all_rows()?;
    let population = options.population()?;
    let thresher = Thresher::get(&options.common)?;
    let work = WorkFolder::new(&options.common, "many-sources")?;
    let machine = Machine::here(work.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let versions = vec![thresher.version.clone()];
    let bench = Bench { options, population, thresher, nats, s3, runtime, work };

    let mut all = Rounds::default();
    for round in 1..=options.common.rounds.get() {
        eprintln!("round {round}");
        play(&bench, round, &mut all)?;
    }
    let healthy = population.of_kind(Kind::Ok).count() as u64;
    let Rounds { first, again, idle, restarted } = all;
    let row = |name, command: &str, resources, rounds| Row {
        command: command.to_owned(),
        rounds,
        ..Row::new(name, resources)
    };
    let looks = idle.iter().filter_map(|round| round.counted.get("looks")).max().copied();
    let rows = [
        row("first harvest", "POST /v1/runs:batch, of all Sources", healthy, first),
        row("second run", "POST /v1/runs:batch, of all healthy Sources", healthy, again),
        row("idle polls", "by schedule", looks.unwrap_or_default(), idle),
        row(
            "scheduler started again",
            "thresher serve --only scheduler",
            u64::from(population.sources),
            restarted,
        ),
    ];
    let report = Report {
        case: "many-sources",
        finished_at: jiff::Timestamp::now(),
        machine,
        setup: setup(options, population, healthy),
        versions,
        rows: rows.into_iter().filter(|row| !row.rounds.is_empty()).collect(),
    };
    Ok(report.summed_up(&[]))
}

fn setup(
    options: &ManySourcesOptions,
    population: Population,
    healthy: u64,
) -> BTreeMap<&'static str, serde_json::Value> {
    let look_every: Vec<u64> = options.look_every.iter().map(|seconds| seconds.get()).collect();
    BTreeMap::from([
        ("sources", json!(population.sources)),
        ("healthy_sources", json!(healthy)),
        ("resources_each", json!(population.resources)),
        ("dead_percent", json!(population.dead_percent)),
        ("slow_percent", json!(population.slow_percent)),
        ("unavailable_percent", json!(population.unavailable_percent)),
        ("flapping_percent", json!(population.flapping_percent)),
        ("schedulers", json!(options.schedulers)),
        ("scheduler_killed_every_seconds", json!(options.kill_scheduler_every)),
        ("idle_seconds", json!(options.idle_seconds)),
        ("look_every_seconds", json!(look_every)),
        ("limit_seconds", json!(options.limit().as_secs())),
        ("rounds", json!(options.common.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, NATS, SeaweedFS as S3")),
    ])
}
