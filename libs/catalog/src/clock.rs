//! The clock of the database, which never goes back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use model::Clock;
use slatedb::manifest::VersionedManifest;
use slatedb_common::clock::{SystemClock, SystemClockTicker};
use tokio::time::Instant;

/// Time that passes evenly from the opening of a catalog. It begins no earlier than the latest time in the
/// catalog's files, because the database refuses to write at an earlier time than before. A machine's clock
/// may be set back, or be behind the earlier owner's.
#[derive(Debug)]
pub(crate) struct DbClock {
    begin: DateTime<Utc>,
    since: Instant,
}

impl DbClock {
    /// Begins now, but no earlier than `least`, in milliseconds of Unix time.
    pub(crate) fn new(clock: &dyn Clock, least: i64) -> Arc<Self> {
        let now: DateTime<Utc> = SystemTime::from(clock.now()).into();
        let least = DateTime::from_timestamp_millis(least).unwrap_or(DateTime::UNIX_EPOCH);
        Arc::new(Self { begin: now.max(least), since: Instant::now() })
    }
}

/// What the files of a catalog say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Files {
    /// The latest time in them, in milliseconds of Unix time: that of the last write, and that in the names of tables,
    /// which begin with their creation time.
    pub(crate) last_written: i64,
    /// How many were never merged.
    pub(crate) fresh: usize,
}

impl Files {
    /// What the files say that this manifest names.
    pub(crate) fn of(manifest: &VersionedManifest) -> Self {
        let runs = manifest.compacted().iter().flat_map(|run| run.sst_views());
        let tables = manifest.l0().iter().chain(runs).map(|view| view.sst.id.value());
        let newest = tables.chain(manifest.last_compacted_l0_sst_id()).map(|id| id.timestamp_ms()).max();
        let newest = newest.and_then(|newest| i64::try_from(newest).ok()).unwrap_or(0);
        Self { last_written: manifest.last_l0_clock_tick().max(newest), fresh: manifest.l0().len() }
    }
}

impl SystemClock for DbClock {
    fn now(&self) -> DateTime<Utc> {
        self.begin + self.since.elapsed()
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}
