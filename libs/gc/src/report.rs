//! The result of a collection.

use jiff::Timestamp;
use model::SourceId;
use serde::Serialize;
use store::Amount;

/// The result of a collection, or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Whether it was a dry run, which only counts.
    pub dry_run: bool,
    /// The retention in seconds.
    pub keep_for_seconds: i64,
    /// Bitstreams in objects of their own.
    pub bitstreams: Counted,
    /// Packs of small bitstreams.
    pub packs: Counted,
    /// Packages of dumps, and their indexes.
    pub packages: Counted,
    /// Checkpoints of uploads.
    pub uploads: Counted,
    /// Temporary files of killed processes, and uploads that never ended. The store does not report the size of such
    /// uploads.
    pub leftovers: Amount,
    /// Deleted resources whose bytes were kept until now.
    pub tombstones: Tombstones,
    /// Packs that were sparse.
    pub rewritten: Rewritten,
    /// Sources with an unfinished run. What was stored since it began is kept.
    pub held_back: Vec<HeldBack>,
    /// Folders of packs and packages without a catalog. They stay unchanged.
    pub strangers: Vec<SourceId>,
}

/// Objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// Removed.
    pub removed: Amount,
    /// Not needed, but within the retention: stored recently or in an unfinished run, or released recently.
    pub young: Amount,
    /// Needed.
    pub in_use: Amount,
}

/// Deleted resources whose bytes were kept until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tombstones {
    /// Tombstones whose bytes were removed.
    pub given_up: u64,
    /// Tombstones past their retention, which only the owner of the Source may remove.
    pub left: u64,
}

/// Packs that were sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Rewritten {
    /// Packs whose live bitstreams were moved into others. They are removed after the retention.
    pub packs: u64,
    /// Bitstreams that were moved.
    pub bitstreams: u64,
    /// Bytes that will be removed with the packs.
    pub bytes: u64,
    /// Packs that only the owner of the Source may rewrite.
    pub left: u64,
}

/// A Source with an unfinished run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    /// The Source.
    pub source: SourceId,
    /// When the run began, or a job of an earlier run that is awaited.
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
