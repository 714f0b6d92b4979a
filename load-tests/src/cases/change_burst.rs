//! `change-burst`: 100,000 resources are stored, and a Change List Index lists 1,000,000 changes to them.

mod asked;

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Context as _;
use serde_json::json;

use self::asked::Asked;
use super::million::Bench;
use super::million::serving::{self, Million};
use crate::check::Check;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::process::output_of;
use crate::report::{Report, Row};
use crate::source::Source;
use crate::stats::rounded;
use crate::thresher::Thresher;

const CHANGES: u64 = 1_000_000;
/// How often each resource changes.
const TIMES_EACH: u64 = 10;
/// Requests beside the necessary ones: the Capability List, `robots.txt` and others.
const OTHER_REQUESTS: u64 = 10;

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let changes = options.resources.unwrap_or(CHANGES);
    let resources = changes.div_ceil(TIMES_EACH);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "change-burst")?;
    let machine = Machine::here(work.path());
    let million = Million::start_telling(options.source, &work, resources)?;
    let versions = vec![thresher.version.clone(), million.source.version()];
    let bench = Bench { thresher, million, work };

    let before = bench.work.make("before")?;
    let mut first = Row::new("first harvest", resources);
    eprintln!("the harvest of {resources} resources, before they change");
    bench.run(&before, &mut first, |told, _| {
        Ok(vec![Check::equal("stored, as sync says", resources, told.outcome.stored)])
    })?;
    eprintln!("writing {changes} changes");
    let documents = bench.million.change(changes)?;
    let Source::Nginx { server, .. } = &bench.million.source else { unreachable!("this case has no other") };

    let mut burst = Row::new("planned", changes);
    for round in 1..=options.rounds.get() {
        eprintln!("round {round}: all changes");
        let folder = bench.work.make(&format!("round-{round}"))?;
        // Each round begins with the same copy.
        output_of(Command::new("cp").arg("-a").arg(before.join("into")).arg(&folder))?;
        let asked_before = server.logged_bytes();
        bench.run(&folder, &mut burst, |told, round| {
            let ended = jiff::Timestamp::now().as_duration().as_secs_f64();
            let asked = Asked::read(&server.log(), asked_before, resources)?;
            let first = asked.first.context("no resource was asked for")?;
            let end_to_end = round.usage.seconds;
            round.usage.seconds = rounded(first - (ended - end_to_end));
            round.counted.extend([
                ("end_to_end_ms".to_owned(), (end_to_end * 1000.0) as u64),
                ("resources_per_second_after_planning".to_owned(), {
                    (resources as f64 / (end_to_end - round.usage.seconds)) as u64
                }),
            ]);
            Ok(vec![
                Check::equal("stored, as sync says", resources, told.outcome.stored),
                Check::equal("resources asked for", resources, asked.distinct),
                Check::equal("requests for resources", resources, asked.requests),
                Check::at_most(
                    "other requests",
                    documents + OTHER_REQUESTS,
                    told.requests.saturating_sub(asked.requests),
                ),
            ])
        })?;
    }

    let setup = BTreeMap::from([
        ("changes", json!(changes)),
        ("resources", json!(resources)),
        ("bytes_each", json!(serving::BYTES_EACH)),
        ("documents", json!(documents)),
        ("declared", json!("change, datetime, lastmod, sha-256, length")),
        ("rounds", json!(options.rounds)),
        ("seconds", json!("of the burst, from the start of the command to its first request for a resource")),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let rows = vec![first, burst];
    Ok(Report { case: "change-burst", finished_at, machine, setup, versions, rows }.summed_up(&[]))
}
