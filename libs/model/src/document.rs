//! Records of a Source's documents.

use std::collections::BTreeMap;

use fixity::Sha256;
use jiff::Timestamp;
use resourcesync::{Capability, Root};
use serde::{Deserialize, Serialize};

use crate::{RunId, SelectionId, SetId};

/// A server's values for conditional requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Validators {
    /// The `ETag` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The `Last-Modified` header, as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A document of the Source: its place in the tree, and how far it is processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRecord {
    /// The set it belongs to.
    pub set: SetId,
    /// The capability it is read as.
    pub capability: Capability,
    /// The index that lists it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The run that last requested it.
    pub run: RunId,
    /// The progress of that run with it.
    pub state: DocumentState,
    /// The options with which its entries were selected when it was last read from its start; none in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionId>,
    /// Its root element; known once it was read (RS-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// Validators of the version that was read to its end.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// SHA-256 of the body that was read to its end, as received; none of a long body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Sha256>,
    /// `at` of its top-level metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The latest instant that `at` can mean: the end of its second, or day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_latest: Option<Timestamp>,
    /// `from` of its top-level metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// `until`: present when the document is closed (RS-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The latest instant that `until` can mean: the end of its second, or day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_latest: Option<Timestamp>,
    /// The end of it that an Archive states, if one led to it. It holds where the document itself states none: what is
    /// archived gets no more changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_until: Option<Timestamp>,
    /// The earliest change in the version that was read to its end, as far as its entries state times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_change: Option<Timestamp>,
    /// The latest change in the version that was read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_change: Option<Timestamp>,
    /// Changes before this time were dropped from the document, maybe unread: it has no `from`, and the
    /// changes that it listed before are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen_before: Option<Timestamp>,
    /// Entries it had when it was last read to its end.
    #[serde(default)]
    pub entries: u64,
    /// Entries among them that could not be read.
    #[serde(default)]
    pub bad: u64,
    /// Entries among them that link to other documents, as all those of an index do.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub documents: u64,
    /// Entries among them that link to packages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packages: u64,
    /// Entries of the manifests of all these packages, once all packages are settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpacked: Option<u64>,
    /// Whether the document is unreliable, so that nothing is concluded from what it omits.
    #[serde(default)]
    pub doubtful: bool,
    /// Quirks found in it, counted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
}

/// The progress of a run with a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum DocumentState {
    /// To be read.
    Queued,
    /// Being read: the entries planned so far, and the validators of their version.
    Reading {
        /// Entries planned.
        planned: u64,
        /// The version they belong to.
        version: Validators,
        /// The times of the changes that they state.
        #[serde(default, rename = "told")]
        changes: ChangeTimes,
    },
    /// Read to its end, or unchanged since.
    Done,
    /// Failed in this run; a problem record has the reason.
    Failed,
}

/// The times of the changes that entries state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeTimes {
    /// The earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// The latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
}

impl DocumentRecord {
    /// Whether its entries link to other documents: an index, whatever its root element.
    pub fn leads_to_documents(&self) -> bool {
        self.root == Some(Root::SitemapIndex) || self.documents > 0
    }

    /// Whether all of it is known: it was read to its end, and so were the packages that it lists.
    pub fn is_read_whole(&self) -> bool {
        self.state == DocumentState::Done && (self.packages == 0 || self.unpacked.is_some())
    }

    /// Whether it lists changes: a Change List or a Change Dump.
    pub fn tells_changes(&self) -> bool {
        self.capability.tells_changes()
    }
}

impl ChangeTimes {
    /// Adds a change.
    pub fn add(&mut self, time: Timestamp) {
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
        self.latest = self.latest.max(Some(time));
    }

    /// Adds the changes of other entries.
    pub fn merge(&mut self, other: Self) {
        other.oldest.into_iter().chain(other.latest).for_each(|time| self.add(time));
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Validators {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}
