//! Absences and the deletion guard: which stored resources that the lists omit may be deleted. Pure.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use model::{Absent, Listing, ResourceRecord, SetId, plural};

use crate::HarvestOptions;

/// A list whose date lies no longer than this before the run may have been dated by the request itself.
const DATED_BY_REQUEST: SignedDuration = SignedDuration::from_mins(10);
/// Minimum time between such lists for one to confirm the other.
const APART: SignedDuration = SignedDuration::from_hours(1);

/// Report of the deletion guard: the run would delete more than the operator allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardReport {
    /// The list that omits them.
    pub document: String,
    /// Resources that would be deleted.
    pub would_delete: u64,
    /// Stored resources of that set.
    pub held: u64,
    /// Limit, in percent.
    pub allowed_percent: u8,
}

/// Lists that omit more stored resources than the operator allows to be deleted without approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManyAbsent {
    /// The list that omits them.
    pub document: String,
    /// Resources that it omits. All of them are kept.
    pub absent: u64,
    /// Stored resources of that set.
    pub held: u64,
    /// Limit, in percent.
    pub allowed_percent: u8,
}

/// Counts of one set: its stored resources, and those that its lists omit.
#[derive(Debug, Clone, Copy, Default)]
pub struct AbsenceCount {
    /// Stored resources.
    pub held: u64,
    /// Stored resources that the lists omit.
    pub absent: u64,
    /// Those among them whose absence is confirmed, so that they would be deleted.
    pub to_delete: u64,
}

/// The lists of a set that were read whole in this run.
#[derive(Debug, Clone)]
pub struct Lists {
    /// The set.
    pub set: SetId,
    /// URI of the first one. Problems of all of them are recorded with it.
    pub document: String,
    /// The earliest `at` of all of them.
    pub at: Option<Timestamp>,
    /// URIs of all of them.
    pub uris: Vec<String>,
}

/// The rules of a run for absent resources.
#[derive(Debug, Clone, Copy)]
pub struct DeletionGuard {
    /// What the operator wants for absent resources.
    pub absent: Absent,
    /// Maximum deletions, in percent of a set's stored resources.
    pub max_percent: u8,
    /// Start of the run.
    pub started_at: Timestamp,
}

impl DeletionGuard {
    /// The rules of a run with these options that started at this time.
    pub fn new(options: &HarvestOptions, started_at: Timestamp) -> Self {
        Self { absent: options.absent, max_percent: options.max_deletes_percent, started_at }
    }

    /// Whether the run would delete more than the operator allows without approval.
    pub fn stops(&self, count: &AbsenceCount) -> bool {
        count.to_delete * 100 > count.held * u64::from(self.max_percent)
    }

    /// Whether the lists omit more stored resources than the operator allows to be deleted without approval. Only
    /// some of them would be deleted now.
    pub fn warns(&self, count: &AbsenceCount) -> bool {
        count.absent * 100 > count.held * u64::from(self.max_percent)
    }

    /// Whether the absence is enough to delete a resource: an earlier list, of an earlier time, omitted it too.
    pub fn is_confirmed(&self, record: &ResourceRecord, at: Option<Timestamp>) -> bool {
        match self.absent {
            Absent::Keep => false,
            Absent::Delete => true,
            Absent::Confirm => {
                let first = record.absent.as_ref().and_then(|absence| absence.at);
                first.zip(at).is_some_and(|(first, at)| first < at && self.are_two_states(first, at))
            }
        }
    }

    /// Whether two dates of a list belong to two states of the Source. A list that is dated by the request always
    /// looks new. It is therefore read again later, when a temporary fault has passed.
    fn are_two_states(&self, first: Timestamp, at: Timestamp) -> bool {
        let earliest = self.started_at.checked_sub(DATED_BY_REQUEST).unwrap_or(Timestamp::MIN);
        at < earliest || at.duration_since(first) >= APART
    }
}

impl fmt::Display for GuardReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { document, would_delete, held, allowed_percent } = self;
        let resources = plural(*held, "resource", "resources");
        write!(
            f,
            "deletion guard: {document} omits {would_delete} of {held} stored {resources} (limit {allowed_percent} %). \
             Nothing was deleted. If the Source did delete them, run again with --max-deletes 100%; if it lost them, do \
             nothing"
        )
    }
}

impl fmt::Display for ManyAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { document, absent, held, allowed_percent } = self;
        let resources = plural(*held, "resource", "resources");
        write!(
            f,
            "{document} omits {absent} of {held} stored {resources} (limit {allowed_percent} %). All of them are kept for \
             now. If the Source did delete them, run again with --max-deletes 100%; if it lost them, do nothing"
        )
    }
}

/// Whether a resource is stored, and belongs to this set.
pub fn is_stored_in(set: &SetId, record: &ResourceRecord) -> bool {
    record.is_present() && record.sets.contains(set)
}

/// Whether an entry asks for a resource that the set's lists do not decide about.
pub fn is_listed_by_others(set: &SetId, lists: &Lists, listing: &Listing) -> bool {
    listing.set != *set || is_newer(listing, lists.at)
}

/// Whether an entry is of a later time than the list, so that the list could not contain the resource yet.
pub fn is_newer(listing: &Listing, at: Option<Timestamp>) -> bool {
    match (listing.as_of, at) {
        (Some(known), Some(at)) => known > at,
        // Without the list's time, the code cannot tell which of the two is newer.
        (_, None) => listing.change.is_some(),
        (None, Some(_)) => false,
    }
}
