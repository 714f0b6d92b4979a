//! Audits: what is held, compared with what a Source's documents say (RS-32).

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an audit counted. Each resource that is wanted counts once; documents and gaps apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditCounts {
    /// Resources held.
    pub held: u64,
    /// Held as declared: a declared digest is that of what is held, and so is the length.
    pub agreeing: u64,
    /// Held, listed, and nothing declared contradicts it; but no digest that is declared could be compared.
    pub without_fixity: u64,
    /// What is known here is of a later moment than the documents speak of: held, or deleted since.
    pub newer: u64,
    /// Listed and not held.
    pub missing: u64,
    /// Held in an earlier version than the Source tells of.
    pub stale: u64,
    /// Held, and what is held contradicts what is declared of this very version, or its own record.
    pub differing: u64,
    /// Held, and listed no more, or deleted by the Source.
    pub extra: u64,
    /// Those of the extra whose absence was noted before: they are kept until a later list confirms it.
    pub extra_noted: u64,
    /// Held and not listed, where a list was not read whole, so that this says nothing.
    pub unjudged: u64,
    /// Documents that were not read to their end, and sets of which none tells all resources.
    pub unread: u64,
    /// Times of which no Change List tells, between a list and the changes that follow it.
    pub gaps: u64,
    /// Resources that are not as the Source tells, and about which nothing is to be done by the operator's word. They count nowhere else.
    pub ignored: u64,
    /// Differences that were queued to be put right.
    pub queued: u64,
}

/// How a resource differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// Listed and not held.
    Missing,
    /// Held in an earlier version.
    Stale,
    /// Held, and not what is declared of this very version.
    Differing,
    /// Held, and not what the Source has any more.
    Extra,
}

impl AuditCounts {
    /// Resources that differ.
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

    /// How many differ so.
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
            Self::Stale => "stale",
            Self::Differing => "differing",
            Self::Extra => "extra",
        })
    }
}
