//! Scrubbing: rereads stored bitstreams in place, and compares them with their records.
//!
//! 1. Stored bitstreams are *offered*, in any order; all of them, a share or a sample is selected (`choose`).
//! 2. They are sorted by location (`order`), so that each pack and package is read once, from its beginning to its
//!    end.
//! 3. Neighbours are read with one request, large ones in pieces (`batch`, `read`), at a rate that several readers
//!    share (`pace`).
//! 4. A mismatch is checked once more in place (`read`), and reported with what was found.

mod batch;
mod choose;
mod external_sort;
mod pace;
mod read;
mod sample;

#[cfg(test)]
mod tests;

use std::num::{NonZeroU64, NonZeroUsize};

use fixity::Computed;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use model::{Damage, DamageFound, Location, ResourceUri, SourceId};
use serde::{Deserialize, Serialize};
use store::{Key, Store, StoreError};

pub use choose::{Choice, Share};
pub use sample::{CONFIDENCE, Reservoir, upper_bound};

use batch::{Batch, Batches};
use choose::Chosen;
use external_sort::ExternalSort;
use pace::Pace;

/// A stored bitstream to read again: the current one of a resource, or a kept version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubItem {
    /// The Source.
    pub source: SourceId,
    /// The resource.
    pub uri: ResourceUri,
    /// Its location.
    pub location: Location,
    /// Its length and digests.
    pub computed: Computed,
    /// Since when it was stored, if it is a kept version; none if it is current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Timestamp>,
}

/// A bitstream that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damaged {
    /// Its resource. If several resources share the bytes, each is reported.
    pub held: ScrubItem,
    /// What was found at its location.
    pub found: DamageFound,
}

/// Options for reading a store.
#[derive(Debug, Clone, Copy)]
pub struct ScrubOptions {
    /// Maximum bytes per second, all readers together; none for no limit.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Concurrent readers. Each takes a few MiB of memory.
    pub at_a_time: NonZeroUsize,
}

/// Result of a scrub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ScrubReport {
    /// Stored resources.
    pub held: u64,
    /// Those that were read.
    pub resources: u64,
    /// Objects, packs and packages that contain them.
    pub objects: u64,
    /// Stored bytes of the intact ones, each read once.
    pub bytes: u64,
    /// Resources with wrong or missing bytes.
    pub damaged: u64,
    /// Resources whose object, pack or package is missing.
    pub missing: u64,
    /// Kept versions that were read. They do not count as resources.
    pub versions: u64,
    /// Those with wrong bytes, missing bytes or a missing object.
    pub versions_damaged: u64,
}

/// Why a scrub stopped.
#[derive(Debug, thiserror::Error)]
pub enum ScrubError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sort failed.
    #[error("cannot write to the system's temporary directory: {0}; make room there, or set TMPDIR")]
    ExternalSort(#[from] std::io::Error),
    /// A reader ended early: by a panic, or because the process ends.
    #[error("a reader ended early: {0}; run the same command again")]
    Task(tokio::task::JoinError),
    /// A line of the temporary file cannot be read back.
    #[error(
        "what was put into the system's temporary directory came back as something else: {0}; run the same command again"
    )]
    Line(#[from] serde_json::Error),
}

/// A scrub that is being prepared.
pub struct Scrub {
    chosen: Chosen,
    order: ExternalSort,
    report: ScrubReport,
}

impl Scrub {
    /// A scrub of the items that will be offered.
    pub fn new(choice: Choice) -> Self {
        Self { chosen: Chosen::new(choice), order: ExternalSort::new(), report: ScrubReport::default() }
    }

    /// Offers a stored bitstream of a resource, or a kept version. A sample is drawn from current versions only,
    /// because these are what it describes.
    ///
    /// # Errors
    /// When it cannot be spooled.
    pub fn offer(&mut self, held: ScrubItem) -> Result<(), ScrubError> {
        let is_version = held.version.is_some();
        if is_version && matches!(self.chosen, Chosen::Sample(_)) {
            return Ok(());
        }
        self.report.held += u64::from(!is_version);
        match self.chosen.take(held) {
            Some(held) => Ok(self.order.add(batch::line(&held)?)?),
            None => Ok(()),
        }
    }

    /// Reads the selected bitstreams, and calls `tell` for each resource with damaged or missing bytes.
    ///
    /// # Errors
    /// When the store fails, or `tell` does. Then the state of unreported resources is unknown.
    pub async fn run(
        self,
        store: &Store,
        options: ScrubOptions,
        mut tell: impl FnMut(Damaged) -> Result<(), ScrubError>,
    ) -> Result<ScrubReport, ScrubError> {
        let Self { chosen, mut order, mut report } = self;
        for held in chosen.drawn() {
            order.add(batch::line(&held)?)?;
        }
        let pace = Pace::new(options.bytes_per_second);
        let reading = stream::iter(Batches::of(order.sorted()?)).map(|batch| {
            let store = store.clone();
            let pace = pace.clone();
            async move {
                let batch = batch?;
                let counted = Counted::of(&batch);
                // A separate task, so that digests are computed on as many processors as there are readers.
                let read = tokio::spawn(read::read(store, pace, batch)).await.map_err(ScrubError::Task)??;
                Ok::<_, ScrubError>((counted, read))
            }
        });
        let mut reading = std::pin::pin!(reading.buffer_unordered(options.at_a_time.get()));
        while let Some(read) = reading.next().await {
            let (Counted { resources, versions, objects }, (bytes, damaged)) = read?;
            report.resources += resources;
            report.versions += versions;
            report.objects += objects;
            report.bytes += bytes;
            for damaged in damaged {
                match (damaged.held.version, damaged.found.is_there) {
                    (Some(_), _) => report.versions_damaged += 1,
                    (None, true) => report.damaged += 1,
                    (None, false) => report.missing += 1,
                }
                tell(damaged)?;
            }
        }
        Ok(report)
    }
}

/// Result of one batch.
struct Counted {
    resources: u64,
    versions: u64,
    objects: u64,
}

impl Counted {
    fn of(batch: &Batch) -> Self {
        let held = || batch.reads.iter().flat_map(|read| &read.held);
        let versions = held().filter(|held| held.version.is_some()).count() as u64;
        let resources = held().count() as u64 - versions;
        Self { resources, versions, objects: batch.objects }
    }
}

impl Damaged {
    /// Content of its problem.
    pub fn damage(&self) -> Damage {
        let ScrubItem { location, computed, .. } = &self.held;
        Damage {
            key: Key::of(location).to_string(),
            offset: location.span().map_or(0, |span| span.offset),
            expected_length: computed.length(),
            expected_sha256: computed.sha256(),
            found: self.found.clone(),
            set_aside: None,
        }
    }
}
