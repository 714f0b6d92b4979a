//! Runs: what the operator asked for, and how far it has come.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{AuditCounts, RunId};

/// How a Source is to be brought in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The whole Resource List (RS-30).
    Baseline,
    /// What changed since (RS-31).
    Incremental,
    /// What is held is compared with what the Source's documents say (RS-32).
    Audit,
    /// What is held of some resources is replaced; no document is read.
    Mend,
}

/// Where a run stands. Each phase can be taken up again after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Documents are read and pending records written.
    Planning,
    /// Pending records are worked off.
    Dispatching,
    /// No pending record is left.
    Finished,
}

/// A run of one Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its name.
    pub id: RunId,
    /// What it does.
    pub mode: Mode,
    /// Where it stands.
    pub phase: Phase,
    /// The options that decide what is read and how, as a text: documents read with others are read again.
    #[serde(default)]
    pub options: String,
    /// Whether all that is held is laid out in the view.
    #[serde(default)]
    pub view: bool,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Whether it was given up before it was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// What it counted; written with every batch, so a crash loses none.
    pub counters: Counters,
}

/// What a run counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Entries read from lists.
    pub listed: u64,
    /// Resources stored and verified.
    pub stored: u64,
    /// Those among them that replace what was held damaged, or not as its record said.
    #[serde(skip_serializing_if = "is_zero")]
    pub healed: u64,
    /// Resources found to be held already.
    pub unchanged: u64,
    /// Resources deleted.
    pub deleted: u64,
    /// Resources that ended as problems.
    pub failed: u64,
    /// Resources that were listed and left alone, since the operator ignores their problems.
    pub ignored: u64,
    /// Entries that asked for nothing of their own: a later one of the same resource took the place of what they asked for, or they delete
    /// what is not held. With these, each entry listed is one of those that are counted here; what is missing was lost without a word.
    #[serde(skip_serializing_if = "is_zero")]
    pub moot: u64,
    /// Bytes of resources received.
    pub bytes: u64,
    /// Requests made, documents included.
    pub requests: u64,
    /// Pending records written.
    pub planned: u64,
    /// Entries among those listed that name resources of other sites than the Source's entry.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign: u64,
    /// Entries that were left out, since they name resources of other sites and only those of the Source's own are wanted.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign_left_out: u64,
    /// Resources that a list does not name any more, and that are kept for now.
    pub absent: u64,
    /// Change documents that did not join on to what was synchronized.
    pub gaps: u64,
    /// Documents that were not read to their end.
    pub documents_failed: u64,
    /// Tolerances that reading needed, by name.
    pub quirks: BTreeMap<String, u64>,
    /// What it found, if it is an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditCounts>,
}

impl Counters {
    /// Entries that were listed and are none of those that ended somehow, after a run that went to its end. What was tried again for problems of
    /// earlier runs is counted as an end too, so it is at least so many.
    pub fn shortfall(&self) -> u64 {
        let ended = [self.stored, self.unchanged, self.deleted, self.failed, self.ignored, self.moot];
        self.listed.saturating_sub(ended.iter().sum())
    }

    /// Adds another document's tolerances.
    pub fn add_quirks(&mut self, quirks: &BTreeMap<String, u64>) {
        for (name, count) in quirks {
            *self.quirks.entry(name.clone()).or_default() += count;
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Incremental => "incremental",
            Self::Audit => "audit",
            Self::Mend => "mend",
        })
    }
}
