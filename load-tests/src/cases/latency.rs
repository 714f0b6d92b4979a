//! `latency-50ms`: 10,000 resources of a Source with a latency of 50 ms, with 64 concurrent requests.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::json;
use simulated_source::{Expected, Size, SourceSpec};

use super::small_files::whole;
use super::{interleaved, measured};
use crate::check::{self, Check};
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::get_all::Got;
use crate::machine::Machine;
use crate::place::Place;
use crate::process::CommandLine;
use crate::report::{REACHED, Report, Round};
use crate::source::Source;
use crate::thresher::{Outcome, Thresher, View};

const RESOURCES: u64 = 10_000;
const BYTES_EACH: u64 = 2048;
const LATENCY: Duration = Duration::from_millis(50);
/// Concurrent requests, in every row.
const AT_ONCE: u16 = 64;
/// Resources whose bytes are read at the end.
const SAMPLE: usize = 10;

/// The programs that harvest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Thresher,
    /// `load-tests get-all`, with a list of the URLs.
    Bare,
}

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    source: Source,
    expected: Vec<Expected>,
    all: Got,
    work: WorkFolder,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "latency-50ms")?;
    let machine = Machine::here(work.path());
    let spec = SourceSpec::default().resources(resources).size(Size::Fixed(BYTES_EACH)).latency(LATENCY);
    let source = Source::simulated(spec.change_list(false))?;
    let Source::Simulated(simulated) = &source else { unreachable!("it was made just now") };
    let expected: Vec<Expected> = simulated.expected().collect();
    let versions = vec![thresher.version.clone(), source.version()];
    let all = whole(&expected)?;
    let bench = Bench { thresher, source, expected, all, work };

    let run = |way, round| bench.run(way, round);
    let rows = interleaved(&[Way::Thresher, Way::Bare], Way::name, resources, options, run)?;
    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("bytes_each", json!(BYTES_EACH)),
        ("latency_ms", json!(LATENCY.as_millis())),
        ("requests_at_a_time", json!(AT_ONCE)),
        ("least_ms", json!(least(resources).as_millis())),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "latency-50ms", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[Way::Bare.name()]))
}

impl Way {
    /// Its name in the report.
    fn name(self) -> &'static str {
        match self {
            Self::Thresher => "thresher, view none",
            Self::Bare => "bare loop",
        }
    }
}

/// The shortest possible time of this many requests, after the list before them.
fn least(resources: u64) -> Duration {
    let turns = resources.div_ceil(u64::from(AT_ONCE)) + 1;
    LATENCY * u32::try_from(turns).unwrap_or(u32::MAX)
}

impl Bench {
    /// One run into a new directory.
    fn run(&self, way: Way, round: usize) -> anyhow::Result<(String, Round)> {
        let Source::Simulated(source) = &self.source else { unreachable!("this case has no other") };
        let folder =
            self.work.make(&format!("round-{round}-{}", way.name().replace(", ", "-").replace(' ', "-")))?;
        source.reset_requests();
        let (command, mut done) = match way {
            Way::Thresher => {
                let command = self.thresher.sync(&self.source.list(), View::None, Some(AT_ONCE));
                let (ended, mut done) = measured(&command, &folder, Some(&self.source))?;
                let place = Place::directory(&folder.join("into"));
                done.checks = check::synced(&Outcome::of(&ended)?, self.expected.len() as u64);
                done.checks.push(check::resident(ended.usage.peak_rss_bytes));
                done.checks.extend(check::harvest(&self.thresher, &place, &self.expected, SAMPLE)?);
                (command, done)
            }
            Way::Bare => {
                let urls: Vec<&str> = self.expected.iter().map(|resource| resource.uri.as_str()).collect();
                fs::write(folder.join("urls.txt"), urls.join("\n"))?;
                let command = CommandLine::new(std::env::current_exe()?);
                let command = command.args(["get-all", "urls.txt", "--at-once", &AT_ONCE.to_string()]);
                let (ended, mut done) = measured(&command, &folder, Some(&self.source))?;
                ended.succeeded()?;
                let got: Got = serde_json::from_str(&ended.output()?)?;
                done.checks = vec![Check::holds("all bodies have the right sha-256", got == self.all)];
                (command, done)
            }
        };
        let requests = source.requests();
        done.checks.push(Check::at_most("requests at a time", AT_ONCE.into(), requests.max_in_flight));
        let least = least(self.expected.len() as u64).as_secs_f64();
        done.counted = BTreeMap::from([
            ("document_requests".to_owned(), requests.documents),
            ("resource_requests".to_owned(), requests.resources),
            ("most_requests_at_a_time".to_owned(), requests.max_in_flight),
            (REACHED.to_owned(), (100.0 * least / done.usage.seconds).round() as u64),
        ]);
        Ok((command.shown(&folder).replace(&self.source.base(), "$SOURCE"), done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_is_not_full_takes_as_long_as_one_that_is() {
        assert_eq!(least(64), LATENCY * 2);
        assert_eq!(least(65), LATENCY * 3);
        assert_eq!(least(10_000), Duration::from_millis(7_900));
    }
}
