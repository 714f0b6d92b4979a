//! `small-source`: what a Source of 20 resources costs a fleet, with a store that is near and with one that takes
//! 20 ms for each request.

mod stand;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use testkit::servers::{NatsServer, SeaweedServer};

use self::stand::Stand;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::ready::make_ready;
use crate::report::{Report, Row};
use crate::sources_server::{Population, SourcesServer};
use crate::thresher::Thresher;

const RESOURCES: u64 = 20;
/// Resources that change before the last run, if there are as many.
const CHANGES: u32 = 100;
/// The latencies of the store, and the rows of each: its first harvest, two runs that find no change, and one that
/// finds changes.
const ROWS: [(Duration, [&str; 4]); 2] = [
    (Duration::ZERO, ["first harvest", "second run", "third run", "run with changes"]),
    (
        Duration::from_millis(20),
        ["first harvest, 20 ms", "second run, 20 ms", "third run, 20 ms", "run with changes, 20 ms"],
    ),
];
/// The place of the run with changes.
const CHANGED: usize = 3;

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let resources = u32::try_from(options.resources.unwrap_or(RESOURCES))?;
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "small-source")?;
    let machine = Machine::here(work.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let versions = vec![thresher.version.clone()];
    // The first Source is not measured, but makes the streams, connections and caches of a fleet.
    let sources = u32::try_from(options.rounds.get() * ROWS.len())? + 1;
    let changes = resources.min(CHANGES);
    let mut server = SourcesServer::start(Population::healthy(sources, resources))?;

    let mut stands = Vec::new();
    let mut rows = Vec::new();
    for (delay, names) in ROWS {
        let folder = work.make(&format!("delay-{}", delay.as_millis()))?;
        let mut stand = Stand::start(&thresher, &runtime, &nats, &s3, delay, &folder)?;
        stand.add(&server, 0..sources)?;
        for run in 0..names.len() {
            if run == CHANGED {
                server.change(0)?;
            }
            stand.measured(&mut server, 0)?;
        }
        stands.push(stand);
        rows.extend(names.map(|name| Row {
            command: "POST /v1/runs:batch".to_owned(),
            ..Row::new(name, resources.into())
        }));
    }
    for round in 0..options.rounds.get() {
        for turn in 0..stands.len() {
            // Each round begins with another store, and each store has a Source of its own.
            let place = (turn + round) % stands.len();
            let source = u32::try_from(round * stands.len() + place)? + 1;
            let stand = &mut stands[place];
            let names = ROWS[place].1;
            make_ready();
            for (run, name) in names.into_iter().enumerate() {
                eprintln!("round {}: {name}", round + 1);
                let changed = if run == CHANGED { changes } else { 0 };
                (0..changed).try_for_each(|_| server.change(source))?;
                let mut done = stand.measured(&mut server, source)?;
                if run == 0 || run == CHANGED {
                    stand.check_stored(&mut done, &thresher, &server, source, (resources, changed))?;
                }
                rows[place * names.len() + run].rounds.push(done);
            }
        }
    }
    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("changes", json!(changes)),
        ("delays_of_the_store_ms", json!(ROWS.map(|(delay, _)| delay.as_millis()))),
        ("counted_after_the_end_ms", json!(stand::COUNTED_AFTER.as_millis())),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback, NATS, SeaweedFS as S3 behind a proxy")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "small-source", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[]))
}
