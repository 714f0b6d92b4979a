//! What is known of a Source's documents.

use std::collections::BTreeMap;

use jiff::Timestamp;
use resourcesync::{Capability, Root};
use serde::{Deserialize, Serialize};

use crate::{RunId, SetId};

/// What a server gave to tell whether something has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Validators {
    /// The `ETag` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The `Last-Modified` header, as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A document of the Source: where it stands in the tree, and how far it is processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRecord {
    /// The set it belongs to.
    pub set: SetId,
    /// What it is read as.
    pub capability: Capability,
    /// The index that names it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The run that last asked for it.
    pub run: RunId,
    /// How far that run has come with it.
    pub state: DocumentState,
    /// Its root element; known once it was read (RS-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// Validators of the version that was read whole.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// `at` of its top-level metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The last instant that `at` can mean: the end of its second, or day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_latest: Option<Timestamp>,
    /// `from` of its top-level metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// `until`: present when the document is closed (RS-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The last instant that `until` can mean: the end of its second, or day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_latest: Option<Timestamp>,
    /// The earliest change that the version read whole tells of, as far as its entries say when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_change: Option<Timestamp>,
    /// The latest change that the version read whole tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_change: Option<Timestamp>,
    /// Changes before this moment fell off the end of the document, maybe unseen: it has no `from`, and the changes that
    /// it told of before are not in it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen_before: Option<Timestamp>,
    /// Entries it had when it was last read whole.
    #[serde(default)]
    pub entries: u64,
    /// Entries among them that could not be read.
    #[serde(default)]
    pub bad: u64,
    /// Entries among them that lead to other documents, as all those of an index do.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub documents: u64,
    /// Entries among them that lead to packages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packages: u64,
    /// Entries of the manifests of all these packages, once every one of them is settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpacked: Option<u64>,
    /// Whether something about it casts doubt on what it does not say: nothing is concluded from absence.
    #[serde(default)]
    pub doubtful: bool,
    /// Tolerances that reading it needed, counted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
}

/// How far a run has come with a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum DocumentState {
    /// To be read.
    Queued,
    /// Being read: this many entries of the version with these validators are planned.
    Reading {
        /// Entries planned.
        planned: u64,
        /// The version they belong to.
        version: Validators,
        /// The changes that they told of.
        #[serde(default)]
        told: Told,
    },
    /// Read to its end, or unchanged since it last was.
    Done,
    /// Given up in this run; a problem record says why.
    Failed,
}

/// The changes that entries tell of, as far as they say when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Told {
    /// The earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// The latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
}

impl DocumentRecord {
    /// Whether its entries lead to other documents: an index, whatever its root element.
    pub fn leads_to_documents(&self) -> bool {
        self.root == Some(Root::SitemapIndex) || self.documents > 0
    }

    /// Whether everything it tells of is known: it was read to its end, and so were the packages it names.
    pub fn is_read_whole(&self) -> bool {
        self.state == DocumentState::Done && (self.packages == 0 || self.unpacked.is_some())
    }

    /// Whether it tells of changes: a Change List or a Change Dump.
    pub fn tells_changes(&self) -> bool {
        self.capability.tells_changes()
    }
}

impl Told {
    /// Adds a change.
    pub fn add(&mut self, time: Timestamp) {
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
        self.latest = self.latest.max(Some(time));
    }

    /// Adds what other entries tell of.
    pub fn merge(&mut self, other: Self) {
        other.oldest.into_iter().chain(other.latest).for_each(|time| self.add(time));
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Validators {
    /// Whether the server gave nothing.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}
