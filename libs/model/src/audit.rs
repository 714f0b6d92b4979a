//! Audits: compare the catalog with a Source's documents (RS-32).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Counts of an audit. Each resource counts once; documents and gaps are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditCounts {
    /// Resources stored.
    pub held: u64,
    /// Stored and matching: digest and length are as declared.
    pub agreeing: u64,
    /// Stored and listed without contradiction, but without a declared digest that could be compared.
    pub without_fixity: u64,
    /// The catalog is newer than the documents: the resource was stored, or deleted, since.
    pub newer: u64,
    /// Listed and not stored.
    pub missing: u64,
    /// Stored in an earlier version than the listed one.
    pub stale: u64,
    /// Stored, but the stored version contradicts the declaration of this very version, or its own record.
    pub differing: u64,
    /// Stored, but no longer listed, or deleted by the Source.
    pub extra: u64,
    /// Those of the extra whose absence was recorded before: they are kept until a later list confirms it.
    pub extra_noted: u64,
    /// Stored and not listed, but a list was not read to its end, so that this proves nothing.
    pub unjudged: u64,
    /// Documents that were not read to their end, and sets without a complete list.
    pub unread: u64,
    /// Intervals that no Change List covers, between a list and the changes that follow it.
    pub gaps: u64,
    /// Resources that differ from the Source, but whose problem the operator ignores. They count nowhere
    /// else.
    pub ignored: u64,
    /// Differences that were queued for repair.
    pub queued: u64,
}

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// Listed and not stored.
    Missing,
    /// Stored in an earlier version.
    #[serde(rename = "outdated")]
    Stale,
    /// Stored, and not as declared of this very version.
    #[serde(rename = "mismatched")]
    Differing,
    /// Stored, and no longer at the Source.
    Extra,
}

impl AuditCounts {
    /// The number of resources that differ.
    pub fn differences(&self) -> u64 {
        self.missing + self.stale + self.differing + self.extra
    }

    /// Whether everything was compared, and nothing differs.
    pub fn is_in_sync(&self) -> bool {
        self.differences() == 0 && self.is_complete()
    }

    /// Whether everything was compared.
    pub fn is_complete(&self) -> bool {
        self.unread == 0 && self.gaps == 0
    }

    /// Counts a difference.
    pub fn add(&mut self, kind: DifferenceKind) {
        match kind {
            DifferenceKind::Missing => self.missing += 1,
            DifferenceKind::Stale => self.stale += 1,
            DifferenceKind::Differing => self.differing += 1,
            DifferenceKind::Extra => self.extra += 1,
        }
    }

    /// How many differ in this way.
    pub fn of(&self, kind: DifferenceKind) -> u64 {
        match kind {
            DifferenceKind::Missing => self.missing,
            DifferenceKind::Stale => self.stale,
            DifferenceKind::Differing => self.differing,
            DifferenceKind::Extra => self.extra,
        }
    }
}

impl DifferenceKind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Missing, Self::Stale, Self::Differing, Self::Extra];
}

impl fmt::Display for DifferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Stale => "outdated",
            Self::Differing => "mismatched",
            Self::Extra => "extra",
        })
    }
}
