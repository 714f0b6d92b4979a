//! Unpackers with only a bus, and their store in a directory. So the gain of two over one is theirs alone,
//! without an object store's server and a scheduler on the same cores.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use testkit::servers::NatsServer;

use super::owner::Owner;
use super::{Bench, MOST_RESIDENT_BYTES};
use crate::cases::unchecked;
use crate::check::Check;
use crate::fleet::{Fleet, FleetStore};
use crate::measure::Usage;
use crate::meter;
use crate::ready::make_ready;
use crate::report::Round;
use crate::stats::rounded;

/// The longest time until the last slices are counted, from the first one's job on.
const COUNTED_WITHIN: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(20);

impl Bench {
    /// The slices of a package, by unpackers without other services. The round reports the time from the
    /// first slice's job to the last one's outcome.
    pub(super) fn alone(
        &self,
        unpackers: u32,
        config: &str,
        name: &str,
        folder: &Path,
    ) -> anyhow::Result<Round> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let nats = runtime.block_on(NatsServer::start())?;
        let directory = folder.join("store");
        let store = FleetStore::Directory(directory.clone());
        let owner = runtime.block_on(Owner::of(&self.archive, &directory, nats.url(), name))?;
        let mut fleet = Fleet::new(&self.thresher, nats.url(), name, store, folder);
        for _ in 0..unpackers {
            fleet.start("unpacker", config)?;
        }
        fleet.until_ready()?;
        let contents = runtime.block_on(owner.open())?;
        make_ready();
        let machine = meter::machine_cpu_seconds()?;
        let working = fleet.cpu_seconds();
        let bus = meter::process_cpu_seconds(nats.process_id());
        let start = Instant::now();
        runtime.block_on(owner.unpack(&contents))?;
        let seconds = start.elapsed().as_secs_f64();
        let peak_rss_bytes = fleet.peak_rss_bytes();
        let usage = Usage {
            seconds: rounded(seconds),
            cpu_seconds: rounded(fleet.cpu_seconds() - working),
            peak_rss_bytes,
            exit_status: Some(0),
        };
        let mut done = unchecked(usage, 0.0, meter::machine_cpu_seconds()? - machine);
        let bus = meter::process_cpu_seconds(nats.process_id()) - bus;
        done.counted = BTreeMap::from([
            ("bus_cpu_ms".to_owned(), (bus * 1000.0) as u64),
            ("slices".to_owned(), contents.slices.into()),
        ]);
        // A slice is counted when its outcome was sent.
        let members = self.package.members.len() as u64;
        let counted = || fleet.counted("unpacker", "thresher_unpack_members");
        while counted()? < members && start.elapsed() < COUNTED_WITHIN {
            runtime.block_on(async { tokio::time::sleep(LOOK).await });
        }
        let proved = counted()?;
        let proved_by_digest =
            fleet.counted_with("unpacker", "thresher_unpack_members", "verdict=\"digest\"")?;
        done.checks = vec![
            Check::equal("members judged", members, proved),
            Check::equal("members whose digest was right", members, proved_by_digest),
            Check::at_most("peak resident bytes of an unpacker", MOST_RESIDENT_BYTES, peak_rss_bytes),
        ];
        // A few large files: deleting them takes little time, and the next run needs the room.
        fs::remove_dir_all(&directory)?;
        Ok(done)
    }
}
