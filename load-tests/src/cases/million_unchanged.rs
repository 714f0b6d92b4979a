//! `million-unchanged`: a list of 1,000,000 entries is read again, and all that it lists is held already.

pub(super) mod serving;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use self::serving::Million;
use super::measured;
use crate::check::Check;
use crate::cli::Options;
use crate::folder::{WorkFolder, bytes_below};
use crate::machine::Machine;
use crate::place::Place;
use crate::report::{Report, Round, Row};
use crate::thresher::{Outcome, Thresher, View};

const RESOURCES: u64 = 1_000_000;
/// As many requests at once as in the other cases; only the first harvest makes many.
const AT_ONCE: u16 = 16;
/// The promise: memory is flat.
const MOST_RESIDENT_BYTES: u64 = 300_000_000;

/// What both runs need.
struct Bench {
    thresher: Thresher,
    million: Million,
    work: WorkFolder,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "million-unchanged")?;
    let machine = Machine::here(work.path());
    let million = Million::start(options.source, &work, resources)?;
    let versions = vec![thresher.version.clone(), million.source.version()];
    let bench = Bench { thresher, million, work };

    let mut first = Row::new("first harvest", resources);
    eprintln!("the first harvest, of {resources} resources");
    bench.run(&mut first, |outcome| vec![Check::equal("stored, as sync says", resources, outcome.stored)])?;
    let mut unchanged = Row::new("all held, new edition of the list", resources);
    for round in 1..=options.rounds.get() {
        eprintln!("round {round}: a new edition of the list, with the same entries");
        bench.million.publish(u32::try_from(round)?)?;
        bench.run(&mut unchanged, |outcome| {
            vec![
                Check::equal("unchanged, as sync says", resources, outcome.unchanged),
                Check::equal("stored, as sync says", 0, outcome.stored),
            ]
        })?;
    }

    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(serving::BYTES_EACH)),
        ("documents", json!(bench.million.documents())),
        ("declared", json!("sha-256, length, lastmod")),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let rows = vec![first, unchanged];
    Ok(Report { case: "million-unchanged", finished_at, machine, setup, versions, rows }.summed_up(&[]))
}

impl Bench {
    /// One `sync` into the directory that all runs share.
    fn run(&self, row: &mut Row, judge: impl FnOnce(&Outcome) -> Vec<Check>) -> anyhow::Result<()> {
        let source = &self.million.source;
        let folder = self.work.make("runs")?;
        let command = self.thresher.sync(&source.list(), View::None, Some(AT_ONCE));
        let before = source.requests()?;
        let (ended, mut round) = measured(&command, &folder, Some(source))?;
        let requests = source.requests()? - before;
        let outcome = Outcome::of(&ended)?;

        round.checks = vec![
            Check::holds("in sync", outcome.in_sync),
            Check::equal("listed, as sync says", self.million.resources, outcome.listed),
        ];
        round.checks.extend(judge(&outcome));
        round.checks.extend(self.held(&Place::directory(&folder.join("into")))?);
        let resident = Check::at_most("peak resident bytes", MOST_RESIDENT_BYTES, ended.usage.peak_rss_bytes);
        round.checks.push(resident);
        if outcome.stored == 0 {
            // Every document once, and what a Source may be asked beside them, such as robots.txt.
            let most = self.million.documents() + 10;
            round.checks.push(Check::at_most("requests seen by the Source", most, requests));
        }
        self.count(&mut round, &folder.join("into"), &outcome, requests)?;
        row.command = command.shown(&folder).replace(&source.base(), "$SOURCE");
        row.rounds.push(round);
        Ok(())
    }

    /// Every resource is held with the right digest, by Thresher's own word.
    fn held(&self, place: &Place) -> anyhow::Result<Vec<Check>> {
        let (mut lines, mut right) = (0, 0);
        self.thresher.held(place, |held| {
            lines += 1;
            let is_right =
                held.state == "present" && self.million.is_right(&held.uri, held.sha256.as_deref());
            right += u64::from(is_right);
        })?;
        Ok(vec![
            Check::equal("held with the right sha-256 by thresher ls", self.million.resources, right),
            Check::equal("lines of thresher ls", self.million.resources, lines),
        ])
    }

    fn count(&self, round: &mut Round, into: &Path, outcome: &Outcome, requests: u64) -> anyhow::Result<()> {
        let data = into.join(".thresher");
        round.counted.extend([
            ("requests_as_sync_says".to_owned(), outcome.requests),
            ("requests_seen_by_source".to_owned(), requests),
            ("catalog_bytes_on_disk".to_owned(), bytes_below(&data.join("catalogs"))?),
            ("all_bytes_on_disk".to_owned(), bytes_below(into)?),
        ]);
        Ok(())
    }
}
