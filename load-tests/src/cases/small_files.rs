//! `small-files`: 20,000 resources of 2 KiB, harvested by Thresher and by alternatives that a user could
//! choose.

mod entrant;
pub(super) mod serving;

use std::collections::BTreeMap;

use anyhow::Context as _;
use data_encoding::HEXLOWER;
use serde_json::json;
use simulated_source::Expected;

use self::entrant::{Entrant, Kept};
use super::{interleaved, measured};
use crate::check::{self, Check};
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::get_all::{Got, Sum};
use crate::machine::Machine;
use crate::peers::{self, Peer};
use crate::place::Place;
use crate::report::{Report, Round};
use crate::source::Source;
use crate::thresher::{Outcome, Thresher};

const RESOURCES: u64 = 20_000;
const BYTES_EACH: u64 = 2048;
/// Resources whose bytes are read at the end.
const SAMPLE: usize = 10;

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    curl: Peer,
    aria2c: Peer,
    wget: Peer,
    resync: Peer,
    source: Source,
    expected: Vec<Expected>,
    /// The expected result of a bare loop.
    all: Got,
    work: WorkFolder,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let curl = peers::curl()?;
    let aria2c = peers::aria2c()?;
    let wget = peers::wget()?;
    let resync = peers::resync()?;
    let work = WorkFolder::new(options, "small-files")?;
    let machine = Machine::here(work.path());
    let (source, expected) = serving::start(options.source, &work, resources, BYTES_EACH)?;
    let others = [&curl, &aria2c, &wget, &resync].map(|peer| peer.version.clone());
    let versions = [thresher.version.clone()].into_iter().chain(others).chain([source.version()]).collect();
    let all = whole(&expected)?;
    let bench = Bench { thresher, curl, aria2c, wget, resync, source, expected, all, work };
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
    let [bare, kept, listed] = [Kept::Nothing, Kept::Harvest, Kept::Listed].map(Entrant::Bare);
    let others = [bare, kept, listed, Entrant::Curl, Entrant::Aria2c, Entrant::Wget, Entrant::ResyncSync];
    Ok(report.summed_up(&others.map(Entrant::name)))
}

impl Bench {
    /// One run of one entrant into a new directory, and the checks of its work.
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
                checks.push(check::resident(ended.usage.peak_rss_bytes));
                checks.extend(check::harvest(
                    &self.thresher,
                    &Place::directory(&into),
                    &self.expected,
                    SAMPLE,
                )?);
                if has_view {
                    checks.extend(check::view(&into, &base, &self.expected)?);
                }
                checks
            }
            Entrant::Bare(kept) => {
                ended.succeeded()?;
                let got: Got = serde_json::from_str(&ended.output()?)?;
                let mut checks = vec![Check::holds("all bodies have the right sha-256", got == self.all)];
                match kept {
                    Kept::Nothing => {}
                    Kept::Files => checks.extend(check::files(&into, &base, &self.expected)?),
                    Kept::Harvest | Kept::Listed => {
                        let place = Place::directory(&into);
                        checks.extend(check::harvest(&self.thresher, &place, &self.expected, SAMPLE)?);
                    }
                }
                checks
            }
            Entrant::Curl | Entrant::Aria2c | Entrant::Wget | Entrant::Wgets | Entrant::ResyncSync => {
                ended.succeeded()?;
                check::files(&into, &base, &self.expected)?
            }
        };
        Ok((command.shown(&folder).replace(&base, "$SOURCE"), done))
    }
}

/// The result of a client that got everything.
pub(crate) fn whole(expected: &[Expected]) -> anyhow::Result<Got> {
    let mut sum = Sum::default();
    for resource in expected {
        let digest =
            HEXLOWER.decode(resource.sha256.as_bytes()).ok().and_then(|digest| digest.try_into().ok());
        sum.count(resource.length, digest.with_context(|| format!("{} is no sha-256", resource.sha256))?);
    }
    Ok(sum.got())
}
