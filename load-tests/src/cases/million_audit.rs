//! `million-audit`: 1,000,000 stored resources are compared with a list of all of them, without a request for
//! any resource.

use std::collections::BTreeMap;

use serde_json::json;

use super::measured;
use super::million::AT_ONCE;
use super::million::serving::{self, Million};
use crate::check::{self, Check};
use crate::cli::Options;
use crate::folder::{WorkFolder, bytes_below};
use crate::machine::Machine;
use crate::report::{Report, Row};
use crate::thresher::{Audited, Outcome, Thresher, View};

const RESOURCES: u64 = 1_000_000;

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "million-audit")?;
    let machine = Machine::here(work.path());
    let million = Million::start(options.source, &work, resources, 0)?;
    let source = &million.source;
    let documents = million.documents();
    let folder = work.make("runs")?;

    eprintln!("the harvest of {resources} resources that are audited then");
    let harvest = thresher.sync(&source.list(), View::None, Some(AT_ONCE));
    let (ended, _) = measured(&harvest, &folder, Some(source))?;
    let harvested = Outcome::of(&ended)?;
    anyhow::ensure!(harvested.in_sync && harvested.stored == resources, "the harvest is not whole");

    let mut row = Row::new("audit, nothing differs", resources);
    let command = thresher.audit(&source.list());
    for round in 1..=options.rounds.get() {
        eprintln!("round {round}: an audit");
        let before = source.requests()?;
        let (ended, mut round) = measured(&command, &folder, Some(source))?;
        let requests = source.requests()? - before;
        let audited = Audited::of(&ended)?;
        round.checks = vec![
            Check::holds("in sync", audited.in_sync),
            Check::equal("entries compared, as audit says", resources, audited.listed),
            Check::equal("resources held, as audit says", resources, audited.held),
            Check::equal("matching, as audit says", resources, audited.matching),
            // Every document once, and the usual requests beside them: no resource.
            Check::at_most("requests seen by the Source", documents + 10, requests),
            check::resident(ended.usage.peak_rss_bytes),
        ];
        round.counted.extend([
            ("requests_as_audit_says".to_owned(), audited.requests),
            ("requests_seen_by_source".to_owned(), requests),
            ("catalog_bytes_on_disk".to_owned(), bytes_below(&folder.join("into/.thresher/catalogs"))?),
        ]);
        row.command = command.shown(&folder).replace(&source.base(), "$SOURCE");
        row.rounds.push(round);
    }

    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(serving::BYTES_EACH)),
        ("documents", json!(documents)),
        ("declared", json!("sha-256, length, lastmod")),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let versions = vec![thresher.version.clone(), source.version()];
    let finished_at = jiff::Timestamp::now();
    Ok(Report { case: "million-audit", finished_at, machine, setup, versions, rows: vec![row] }
        .summed_up(&[]))
}
