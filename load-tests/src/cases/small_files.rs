//! `small-files`: 20,000 resources of 2 KiB, harvested by Thresher and by what a user could pick instead.

mod entrant;
pub(super) mod serving;

use std::collections::BTreeMap;

use serde_json::json;
use testkit::source::Expected;

use self::entrant::Entrant;
use super::{interleaved, measured};
use crate::check;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::peers;
use crate::place::Place;
use crate::report::{Report, Round};
use crate::source::Source;
use crate::thresher::{Outcome, Thresher};

const RESOURCES: u64 = 20_000;
const BYTES_EACH: u64 = 2048;
/// Resources whose bytes are asked for at the end.
const SAMPLE: usize = 10;

/// What every run needs.
struct Bench {
    thresher: Thresher,
    curl: peers::Peer,
    resync: peers::Peer,
    source: Source,
    expected: Vec<Expected>,
    work: WorkFolder,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES);
    let (thresher, curl, resync) = (Thresher::get(options)?, peers::curl()?, peers::resync()?);
    let work = WorkFolder::new(options, "small-files")?;
    let machine = Machine::here(work.path());
    let (source, expected) = serving::start(options.source, &work, resources, BYTES_EACH)?;
    let versions =
        vec![thresher.version.clone(), curl.version.clone(), resync.version.clone(), source.version()];
    let bench = Bench { thresher, curl, resync, source, expected, work };
    let run = |entrant, round| bench.run(entrant, round);
    let rows = interleaved(&Entrant::ALL, Entrant::name, resources, options, run)?;
    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(BYTES_EACH)),
        ("declared", json!("sha-256, length, lastmod")),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "small-files", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[Entrant::Curl.name(), Entrant::ResyncSync.name()]))
}

impl Bench {
    /// One run of one entrant, into a fresh directory, and whether it has done what it should.
    fn run(&self, entrant: Entrant, round: usize) -> anyhow::Result<(String, Round)> {
        let folder = self.work.make(&format!("round-{round}/{}", entrant.folder()))?;
        let into = folder.join("into");
        let command = entrant.command(self, &folder)?;
        let before = self.source.requests()?;
        let (ended, mut done) = measured(&command, &folder, Some(&self.source))?;
        done.counted.insert("requests_seen_by_source".to_owned(), self.source.requests()? - before);
        let base = self.source.base();
        done.checks = match entrant {
            Entrant::Thresher { has_view, .. } => {
                let mut checks = check::synced(&Outcome::of(&ended)?, self.expected.len() as u64);
                checks.extend(check::harvest(
                    &self.thresher,
                    &Place::directory(&into),
                    &self.expected,
                    SAMPLE,
                )?);
                if has_view {
                    let host = base.trim_start_matches("http://").replace(':', "+");
                    checks.extend(check::files(&into.join(host), &base, &self.expected)?);
                }
                checks
            }
            Entrant::Curl | Entrant::ResyncSync => {
                ended.succeeded()?;
                check::files(&into, &base, &self.expected)?
            }
        };
        Ok((command.shown(&folder).replace(&base, "$SOURCE"), done))
    }
}
