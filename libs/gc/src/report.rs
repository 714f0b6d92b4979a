//! What a collection came to.

use jiff::Timestamp;
use model::SourceId;
use serde::Serialize;
use store::Amount;

/// What a collection came to, or would come to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Whether nothing was done, but only counted.
    pub dry_run: bool,
    /// The retention time in seconds.
    pub keep_for_seconds: i64,
    /// Bitstreams that are objects of their own.
    pub bitstreams: Counted,
    /// Packs of small bitstreams.
    pub packs: Counted,
    /// Packages of dumps, and the indexes beside them.
    pub packages: Counted,
    /// Notes of uploads.
    pub uploads: Counted,
    /// Temporary files of killed processes, and uploads that were begun and never ended. What such an upload has taken in is not told by the store.
    pub leftovers: Amount,
    /// Deleted resources whose bytes were kept up to now.
    pub tombstones: Tombstones,
    /// Packs that were mostly dead.
    pub rewritten: Rewritten,
    /// Sources with a run that is not finished: what was stored since it began is kept.
    pub held_back: Vec<HeldBack>,
    /// Folders of packs and packages of which there is no catalog: they are left alone.
    pub strangers: Vec<SourceId>,
}

/// Objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// Removed.
    pub removed: Amount,
    /// Not needed, but young: stored lately or in a run that is not finished, or let go of lately.
    pub young: Amount,
    /// Needed.
    pub in_use: Amount,
}

/// Deleted resources whose bytes were kept up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tombstones {
    /// Their bytes were given up.
    pub given_up: u64,
    /// Their time has passed, and only the owner of the Source may give them up.
    pub left: u64,
}

/// Packs that were mostly dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Rewritten {
    /// Packs whose living bitstreams were moved into others. They go when their time has passed.
    pub packs: u64,
    /// Bitstreams that were moved.
    pub bitstreams: u64,
    /// Bytes that go with the packs.
    pub bytes: u64,
    /// Packs that only the owner of the Source may rewrite.
    pub left: u64,
}

/// A Source with a run that is not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    /// The Source.
    pub source: SourceId,
    /// When the run began, or a job of an earlier one that is waited for.
    pub since: Timestamp,
}

impl Counted {
    pub(crate) fn add(&mut self, other: Self) {
        self.removed += other.removed;
        self.young += other.young;
        self.in_use += other.in_use;
    }
}

impl Report {
    /// All that was removed.
    pub fn removed(&self) -> Amount {
        let Self { bitstreams, packs, packages, uploads, leftovers, .. } = self;
        let kinds = [bitstreams.removed, packs.removed, packages.removed, uploads.removed, *leftovers];
        kinds.into_iter().fold(Amount::default(), |mut sum, kind| {
            sum += kind;
            sum
        })
    }
}
