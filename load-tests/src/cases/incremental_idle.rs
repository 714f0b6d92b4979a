//! `incremental-idle`: 1,000,000 resources are stored, and the Source has no changes.

use std::collections::BTreeMap;

use serde_json::json;

use super::million::Bench;
use super::million::serving::{self, Million};
use crate::check::Check;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::report::{Report, Row};
use crate::thresher::Thresher;

const RESOURCES: u64 = 1_000_000;
/// The promise: checking for changes is cheap, however many resources are stored.
const MOST_REQUESTS: u64 = 2;

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "incremental-idle")?;
    let machine = Machine::here(work.path());
    let million = Million::start_telling(options.source, &work, resources)?;
    let versions = vec![thresher.version.clone(), million.source.version()];
    let bench = Bench { thresher, million, work };
    let folder = bench.work.make("runs")?;

    let mut first = Row::new("first harvest", resources);
    eprintln!("the first harvest, of {resources} resources");
    bench.run(&folder, &mut first, |told, _| {
        Ok(vec![Check::equal("stored, as sync says", resources, told.outcome.stored)])
    })?;
    let mut idle = Row::new("nothing new", resources);
    for round in 1..=options.rounds.get() {
        eprintln!("round {round}: nothing new");
        bench.run(&folder, &mut idle, |told, _| {
            Ok(vec![
                Check::equal("stored, as sync says", 0, told.outcome.stored),
                Check::at_most("requests seen by the Source", MOST_REQUESTS, told.requests),
            ])
        })?;
    }

    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(serving::BYTES_EACH)),
        ("documents", json!("a Capability List, Resource Lists, a Change List without entries")),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let rows = vec![first, idle];
    Ok(Report { case: "incremental-idle", finished_at, machine, setup, versions, rows }.summed_up(&[]))
}
