//! `profile`: where the time of a small resource goes, not how fast it is: system calls, instructions,
//! allocations, and the part of the program they belong to. It prints Markdown.

mod calls;
mod instructions;
mod samples;
mod stage;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::ensure;
use simulated_source::Expected;

use self::instructions::Instructions;
use self::samples::Samples;
use super::measured;
use super::small_files::serving;
use crate::check;
use crate::cli::Options;
use crate::folder::WorkFolder;
use crate::peers;
use crate::process::output_of;
use crate::source::Source;
use crate::thresher::{Outcome, Thresher, View};

const RESOURCES: u64 = 10_000;
const BYTES_EACH: u64 = 2048;
const AT_ONCE: u16 = 16;
/// Samples per second of processor time: a number that no timer of the program is a multiple of.
const SAMPLES_PER_SECOND: u64 = 997;

/// A Source of some resources, and one of twice as many. The difference of the two harvests is the cost of
/// the resources, without start and end.
struct Bench {
    thresher: Thresher,
    less: Served,
    more: Served,
}

/// A Source, and the folder of its harvests.
struct Served {
    source: Source,
    expected: Vec<Expected>,
    work: WorkFolder,
}

/// The costs of a resource, as far as the tools are available.
#[derive(Debug, Default)]
struct Found {
    /// The most resources, and their kind.
    resources: u64,
    /// System calls by their names, per resource.
    calls: Option<BTreeMap<String, f64>>,
    /// Per resource.
    instructions: Option<Instructions>,
    /// For all of them.
    samples: Option<Samples>,
}

/// Runs the case, and returns its tables.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    ensure!(options.only.is_empty(), "this case has no rows: leave --only out");
    let resources = options.resources.unwrap_or(RESOURCES).max(2);
    let thresher = Thresher::get(options)?;
    let served = |name, resources| -> anyhow::Result<Served> {
        let work = WorkFolder::new(options, name)?;
        let (source, expected) = serving::start(options.source, &work, resources, BYTES_EACH)?;
        Ok(Served { source, expected, work })
    };
    let bench = Bench {
        thresher,
        less: served("profile-less", resources / 2)?,
        more: served("profile-more", resources)?,
    };
    let found = Found {
        resources,
        calls: bench.with("strace", Bench::calls)?,
        instructions: bench.with("valgrind", Bench::instructions)?,
        samples: bench.with("perf", Bench::samples)?,
    };
    Ok(table::of(&found, &bench.thresher.version))
}

impl Bench {
    /// The result of a tool; None if it is not installed, or not permitted.
    fn with<T>(
        &self,
        tool: &str,
        look: impl Fn(&Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Option<T>> {
        if peers::on_path(tool).is_none() {
            eprintln!("there is no {tool}: what it would tell is left out");
            return Ok(None);
        }
        eprintln!("under {tool}");
        look(self)
    }

    fn calls(&self) -> anyhow::Result<Option<BTreeMap<String, f64>>> {
        let count = |served| {
            let report = self.harvest(served, "strace", &["-f", "-c", "-o", "calls.txt"])?.join("calls.txt");
            anyhow::Ok(calls::counted(&fs::read_to_string(report)?))
        };
        Ok(Some(self.of_one(&count(&self.less)?, &count(&self.more)?)))
    }

    fn instructions(&self) -> anyhow::Result<Option<Instructions>> {
        let options = ["--tool=callgrind", "--callgrind-out-file=callgrind.out"];
        let count = |served| {
            let report = self.harvest(served, "valgrind", &options)?.join("callgrind.out");
            Instructions::read(&report)
        };
        let less = count(&self.less)?;
        let more = count(&self.more)?;
        let resources = self.resources_more();
        Ok(Some(Instructions {
            by_stage: self.of_one(&less.by_stage, &more.by_stage),
            allocations: (more.allocations - less.allocations) / resources,
        }))
    }

    fn samples(&self) -> anyhow::Result<Option<Samples>> {
        // A virtual machine may have no counters; every one has a clock.
        let frequency = SAMPLES_PER_SECOND.to_string();
        let record = ["record", "-q", "-g", "-e", "cpu-clock", "-F", &frequency, "-o", "perf.data"];
        let folder = self.harvest(&self.more, "perf", &record)?;
        let script = ["script", "-i", "perf.data", "-F", "ip,sym,dso"];
        let script = output_of(Command::new("perf").args(script).current_dir(&folder))?;
        let samples = Samples::of(&script);
        if samples.count == 0 {
            eprintln!("perf has seen nothing: it may not be allowed to look");
            return Ok(None);
        }
        Ok(Some(samples))
    }

    /// One harvest under a tool; returns the path of the tool's report.
    fn harvest(&self, served: &Served, tool: &str, arguments: &[&str]) -> anyhow::Result<PathBuf> {
        let folder = served.work.make(tool)?;
        let command = self.thresher.sync(&served.source.list(), View::None, Some(AT_ONCE));
        let command = command.run_by(tool, arguments);
        let (ended, _) = measured(&command, &folder, Some(&served.source))?;
        let checks = check::synced(&Outcome::of(&ended)?, served.expected.len() as u64);
        ensure!(checks.iter().all(|check| check.holds), "the harvest under {tool} is not whole: {checks:?}");
        Ok(folder)
    }

    fn resources_more(&self) -> f64 {
        (self.more.expected.len() - self.less.expected.len()) as f64
    }

    /// The difference of each, per additional resource.
    fn of_one(&self, less: &BTreeMap<String, f64>, more: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        let resources = self.resources_more();
        let one = |(name, count): (&String, &f64)| {
            (name.clone(), (count - less.get(name).copied().unwrap_or_default()) / resources)
        };
        more.iter().map(one).collect()
    }
}
