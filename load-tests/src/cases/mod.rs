//! The cases: each measures one thing.

pub(crate) mod million_unchanged;
pub(crate) mod read_lists;
pub(crate) mod scale_out;
pub(crate) mod small_files;

use std::path::Path;

use crate::measure::Usage;
use crate::meter;
use crate::process::{CommandLine, Ended};
use crate::report::Round;
use crate::source::Source;
use crate::stats::rounded;

/// Runs a command inside a folder, and tells what it, the Source if there is one, and everybody else used meanwhile.
fn measured(command: &CommandLine, folder: &Path, source: Option<&Source>) -> anyhow::Result<(Ended, Round)> {
    // What earlier commands wrote shall not be written back to disk in this one's time.
    nix::unistd::sync();
    let served = || source.map_or(0.0, Source::cpu_seconds);
    let (machine, serving) = (meter::machine_cpu_seconds()?, served());
    let ended = command.measured(folder)?;
    let source_cpu_seconds = served() - serving;
    let Usage { cpu_seconds, .. } = ended.usage;
    let all = meter::machine_cpu_seconds()? - machine;
    let round = Round {
        usage: ended.usage,
        source_cpu_seconds: rounded(source_cpu_seconds),
        // The kernel's three counts are taken one after another, and rounded to ticks.
        other_cpu_seconds: rounded((all - source_cpu_seconds - cpu_seconds).max(0.0)),
        checks: Vec::new(),
        counted: Default::default(),
    };
    Ok((ended, round))
}
