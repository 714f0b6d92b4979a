//! The time in which a fleet's unpackers work on the slices of a package: from its opening to the last
//! slice's outcome.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::fleet::Fleet;
use crate::meter;
use crate::source::Source;

/// How often the progress of the unpackers is read.
const LOOK: Duration = Duration::from_millis(20);

/// Processor time of all programs, in total or between two moments, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) unpackers: f64,
    pub(super) scheduler: f64,
    pub(super) store: f64,
    pub(super) bus: f64,
    pub(super) source: f64,
    pub(super) machine: f64,
}

/// Measurements of the phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    pub(super) seconds: f64,
    pub(super) used: Used,
}

/// The measured processes.
pub(super) struct Watched<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) source: &'a Source,
    /// The process of the store's server.
    pub(super) store: u32,
    /// The process of the bus's server.
    pub(super) bus: u32,
}

impl Watched<'_> {
    /// Harvests the Source, whose package has this many members, and returns the phase, and the time of the
    /// whole harvest in seconds.
    pub(super) fn harvest(&self, members: u64) -> anyhow::Result<(Phase, f64)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let begun = Instant::now();
        let list = self.source.list();
        std::thread::scope(|scope| {
            let harvest = scope.spawn(|| self.fleet.harvest(&list).map(|()| begun.elapsed().as_secs_f64()));
            let mut first = None;
            let mut last = None;
            while last.is_none() {
                // Read before the count: all is counted before the harvest is over.
                let is_over = harvest.is_finished();
                if first.is_none() && self.fleet.counted("unpacker", "thresher_unpack_packages")? > 0 {
                    first = Some(self.now()?);
                }
                if first.is_some() && self.fleet.counted("unpacker", "thresher_unpack_members")? >= members {
                    last = Some(self.now()?);
                }
                if is_over {
                    break;
                }
                runtime.block_on(async { tokio::time::sleep(LOOK).await });
            }
            let joined = harvest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let seconds = joined?;
            let (start, before) = first.context("no unpacker has counted a package")?;
            let (end, after) = last.context("the unpackers have not counted all members")?;
            Ok((Phase { seconds: (end - start).as_secs_f64(), used: after.since(before) }, seconds))
        })
    }

    fn now(&self) -> anyhow::Result<(Instant, Used)> {
        let used = Used {
            unpackers: self.fleet.cpu_seconds_of("unpacker"),
            scheduler: self.fleet.cpu_seconds_of("scheduler"),
            store: meter::process_cpu_seconds(self.store),
            bus: meter::process_cpu_seconds(self.bus),
            source: self.source.cpu_seconds(),
            machine: meter::machine_cpu_seconds()?,
        };
        Ok((Instant::now(), used))
    }
}

impl Used {
    fn since(self, before: Self) -> Self {
        Self {
            unpackers: self.unpackers - before.unpackers,
            scheduler: self.scheduler - before.scheduler,
            store: self.store - before.store,
            bus: self.bus - before.bus,
            source: self.source - before.source,
            machine: self.machine - before.machine,
        }
    }
}
