//! Runs: each request of the operator, and its progress.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{AuditCounts, RunId};

/// The mode of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Read the whole Resource List (RS-30).
    Baseline,
    /// Read the changes since the last run (RS-31).
    Incremental,
    /// Compare the catalog with the Source's documents (RS-32).
    Audit,
    /// Replace stored versions of some resources; no document is read.
    #[serde(rename = "mend")]
    Repair,
}

/// The phase of a run. Each phase can be resumed after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Documents are read and pending records written.
    Planning,
    /// Pending records are dispatched and settled.
    Dispatching,
    /// No pending record is left.
    Finished,
}

/// A run of one Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Its mode.
    pub mode: Mode,
    /// Its phase.
    pub phase: Phase,
    /// The options that decide what is read and how, as text: documents that were read with other options are
    /// read again.
    #[serde(default)]
    pub options: String,
    /// Whether all stored resources are written to the view.
    #[serde(default)]
    pub view: bool,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Whether it was cancelled before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Its counters; written with every batch, so a crash loses none.
    pub counters: Counters,
}

/// Counters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Entries read from lists.
    pub listed: u64,
    /// Resources stored and verified.
    pub stored: u64,
    /// Those among them that replace a damaged version, or one that differed from its record.
    #[serde(skip_serializing_if = "is_zero")]
    pub healed: u64,
    /// Those among them whose bytes a mirror gave.
    #[serde(skip_serializing_if = "is_zero")]
    pub mirrored: u64,
    /// Those among them that patches made from the version before.
    #[serde(skip_serializing_if = "is_zero")]
    pub patched: u64,
    /// Resources whose patches were not applied: they were requested themselves.
    #[serde(skip_serializing_if = "is_zero")]
    pub patches_unused: u64,
    /// Bytes of resources that were not received, because patches made them.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_saved: u64,
    /// Resources that were already stored.
    pub unchanged: u64,
    /// Resources deleted.
    pub deleted: u64,
    /// Resources that ended as problems.
    pub failed: u64,
    /// Listed resources that were skipped, since the operator ignores their problems.
    pub ignored: u64,
    /// Entries that needed nothing of their own: a later one of the same resource superseded them, or they
    /// delete a resource that is not stored. With these, every listed entry has one of these counters; the
    /// rest is unaccounted for.
    #[serde(rename = "moot", skip_serializing_if = "is_zero")]
    pub superseded: u64,
    /// Bytes of resources received.
    pub bytes: u64,
    /// Requests sent, including those for documents.
    pub requests: u64,
    /// Pending records written.
    pub planned: u64,
    /// Records of an OAI-PMH repository that were asked for as a sample, although nothing says that they changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub sampled: u64,
    /// Listed entries of other sites than the Source's entry.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign: u64,
    /// Entries that were left out, since they belong to other sites and only those of the Source's own are
    /// harvested.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign_left_out: u64,
    /// Entries that were left out, since they do not meet the operator's conditions on type and links.
    #[serde(skip_serializing_if = "is_zero")]
    pub out_of_scope: u64,
    /// Resources that were left to what their links lead to, by the operator's rule.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_rule: u64,
    /// Entries that were left out, since their first Source is a publication of the store that would take them.
    #[serde(skip_serializing_if = "is_zero")]
    pub loops: u64,
    /// Links that were followed: each is an entry of a resource that no list need name.
    #[serde(skip_serializing_if = "is_zero")]
    pub linked: u64,
    /// Resources that a list omits, and that are kept for now.
    pub absent: u64,
    /// Change documents that left a gap after what was synchronized.
    pub gaps: u64,
    /// Documents that were not read to their end.
    pub documents_failed: u64,
    /// Quirks found, by name.
    pub quirks: BTreeMap<String, u64>,
    /// The result of an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditCounts>,
}

impl Counters {
    /// Entries, also those of links, without any result, after a run that reached its end. Retries of earlier problems also
    /// count as results, so this is a lower bound.
    pub fn shortfall(&self) -> u64 {
        let ended = [self.stored, self.unchanged, self.deleted, self.failed, self.ignored, self.superseded];
        (self.listed + self.linked).saturating_sub(ended.iter().sum())
    }

    /// Counts a quirk.
    pub fn add_quirk(&mut self, name: &str, times: u64) {
        *self.quirks.entry(name.to_owned()).or_default() += times;
    }

    /// Adds another document's quirks.
    pub fn add_quirks(&mut self, quirks: &BTreeMap<String, u64>) {
        for (name, count) in quirks {
            self.add_quirk(name, *count);
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
            Self::Repair => "mend",
        })
    }
}
