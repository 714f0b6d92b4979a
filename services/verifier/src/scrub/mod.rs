//! Scrubbing: stored bitstreams are read again, where they lie, and compared with what is known of them.
//!
//! 1. What is held is *offered*, in any order; all of it, a share or a sample is chosen (`choose`).
//! 2. It is sorted by where it lies (`order`), so that each pack and package is read once, from its beginning to its end.
//! 3. Neighbours are read with one request, large ones in pieces (`batch`, `read`), at a rate that several readers share (`pace`).
//! 4. What is not what it should be is looked at once more, as it is (`read`), and told with what was found.

mod batch;
mod choose;
mod order;
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
use order::Order;
use pace::Pace;

/// What is held of a resource, or kept as an earlier version of it, to be read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The Source.
    pub source: SourceId,
    /// The resource.
    pub uri: ResourceUri,
    /// Where it lies.
    pub location: Location,
    /// What it is.
    pub computed: Computed,
    /// From when on it was held, where it is an earlier version that is kept; none where it is what is held now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Timestamp>,
}

/// A bitstream that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damaged {
    /// Whose it is. Where several resources share what they hold, each is told of.
    pub held: Held,
    /// What was found in its place.
    pub found: DamageFound,
}

/// How a store is read.
#[derive(Debug, Clone, Copy)]
pub struct ScrubOptions {
    /// Bytes read in a second at most, all readers together; none: as fast as it goes.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Readers at a time. Each has a few MiB in memory.
    pub at_a_time: NonZeroUsize,
}

/// What a scrub came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ScrubReport {
    /// Resources that are held.
    pub held: u64,
    /// Those among them that were read.
    pub resources: u64,
    /// Objects, packs and packages in which they lie.
    pub objects: u64,
    /// Bytes that are stored of those that are whole, each read once.
    pub bytes: u64,
    /// Resources whose bytes are other ones than they should be, or fewer.
    pub damaged: u64,
    /// Resources whose object, pack or package is gone.
    pub missing: u64,
    /// Earlier versions that are kept and were read. They are no resources of their own.
    pub versions: u64,
    /// Those among them whose bytes are other ones, fewer, or gone.
    pub versions_damaged: u64,
}

/// Why a scrub came to no end.
#[derive(Debug, thiserror::Error)]
pub enum ScrubError {
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is to be read could not be put into order.
    #[error("cannot write to the system's temporary directory: {0}; make room there, or set TMPDIR")]
    Order(#[from] std::io::Error),
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
    order: Order,
    report: ScrubReport,
}

impl Scrub {
    /// A scrub of what will be offered.
    pub fn new(choice: Choice) -> Self {
        Self { chosen: Chosen::new(choice), order: Order::new(), report: ScrubReport::default() }
    }

    /// Offers what is held of a resource, or a version that is kept of it. Samples are drawn of what is held alone, since that is what they
    /// speak of.
    ///
    /// # Errors
    /// When it cannot be put away.
    pub fn offer(&mut self, held: Held) -> Result<(), ScrubError> {
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

    /// Reads what was chosen, and calls `tell` for each resource whose bytes are not what they should be.
    ///
    /// # Errors
    /// When the store cannot be asked, or `tell` fails: then nothing is known of what was not told.
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
            let (store, pace) = (store.clone(), pace.clone());
            async move {
                let batch = batch?;
                let counted = Counted::of(&batch);
                // A task of its own: digests are to be computed on as many processors as there are readers.
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

/// What one batch comes to.
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
    /// What its problem says.
    pub fn damage(&self) -> Damage {
        let Held { location, computed, .. } = &self.held;
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
