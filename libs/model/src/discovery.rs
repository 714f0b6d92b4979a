//! What finding out what a Source offers has given, so that it need not be found out anew in each run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use resourcesync::{Capability, Header};
use serde::{Deserialize, Serialize};

use crate::{SetId, Validators};

/// What was found when a Source was last asked what it offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryRecord {
    /// The way in that was given.
    pub entry: String,
    /// When the look began.
    pub looked_up_at: Timestamp,
    /// The sets that were found, in their order. What each offers stands in its own record.
    pub sets: Vec<SetId>,
    /// Documents that should have been read and were not: as long as there are any, each run looks again.
    #[serde(default)]
    pub failures: u64,
    /// The documents on the way, as far as a "not modified" can be trusted to stand for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<KnownDocument>,
}

/// What a document on the way to the sets said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDocument {
    /// The URL that was asked for.
    pub url: String,
    /// The URL that answered, after redirects.
    pub answered_by: String,
    /// What to recognise this version by.
    pub validators: Validators,
    /// What it says of itself.
    pub header: Header,
    /// Its entries; none of a list of resources, of which only the head is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<KnownEntry>,
    /// Tolerances that reading it needed, counted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
}

/// An entry of such a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownEntry {
    /// Where it leads.
    pub uri: String,
    /// What it says is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// The hubs that push it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<String>,
}
