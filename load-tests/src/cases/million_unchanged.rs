//! `million-unchanged`: a list of 1,000,000 entries is read again, and all of its resources are already stored.
//! `million-links`: the same with three links in each entry.

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
/// Links of an entry, in the case with links.
const LINKS: usize = 3;

/// Runs the case without links.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    run_with(options, "million-unchanged", 0)
}

/// Runs the case with links.
pub(crate) fn run_linked(options: &Options) -> anyhow::Result<Report> {
    run_with(options, "million-links", LINKS)
}

fn run_with(options: &Options, case: &'static str, links: usize) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, case)?;
    let machine = Machine::here(work.path());
    let million = Million::start(options.source, &work, resources, links)?;
    let versions = vec![thresher.version.clone(), million.source.version()];
    let bench = Bench { thresher, million, work };
    let folder = bench.work.make("runs")?;

    let mut first = Row::new("first harvest", resources);
    eprintln!("the first harvest, of {resources} resources");
    bench.run(&folder, &mut first, |told, _| {
        Ok(vec![
            Check::equal("listed, as sync says", resources, told.outcome.listed),
            Check::equal("stored, as sync says", resources, told.outcome.stored),
        ])
    })?;
    let mut unchanged = Row::new("all held, new edition of the list", resources);
    for round in 1..=options.rounds.get() {
        eprintln!("round {round}: a new edition of the list, with the same entries");
        bench.million.publish(u32::try_from(round)?)?;
        bench.run(&folder, &mut unchanged, |told, _| {
            Ok(vec![
                Check::equal("listed, as sync says", resources, told.outcome.listed),
                Check::equal("unchanged, as sync says", resources, told.outcome.unchanged),
                Check::equal("stored, as sync says", 0, told.outcome.stored),
                // Every document once, and the usual requests beside them, such as robots.txt.
                Check::at_most("requests seen by the Source", bench.million.documents() + 10, told.requests),
            ])
        })?;
    }

    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(serving::BYTES_EACH)),
        ("documents", json!(bench.million.documents())),
        ("declared", json!("sha-256, length, lastmod")),
        ("links_each", json!(links)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let rows = vec![first, unchanged];
    Ok(Report { case, finished_at, machine, setup, versions, rows }.summed_up(&[]))
}
