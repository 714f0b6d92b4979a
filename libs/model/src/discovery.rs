//! The result of discovery, stored so that not every run repeats it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use resourcesync::{Capability, Header};
use serde::{Deserialize, Serialize};

use crate::{SetId, Validators};

/// The result of the last discovery of a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryRecord {
    /// The entry URL.
    pub entry: String,
    /// When discovery began.
    pub looked_up_at: Timestamp,
    /// The sets that were found, in order. The capabilities of each are in its own record.
    pub sets: Vec<SetId>,
    /// Documents that could not be read: while there are any, each run repeats discovery.
    #[serde(default)]
    pub failures: u64,
    /// The documents on the path to the sets, as far as a 304 can be trusted to confirm them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<KnownDocument>,
}

/// A document on the path to the sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDocument {
    /// The requested URL.
    pub url: String,
    /// The URL that answered, after redirects.
    pub answered_by: String,
    /// The validators of this version.
    pub validators: Validators,
    /// Its top-level metadata.
    pub header: Header,
    /// Its entries; none of a list of resources, of which only the head is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<KnownEntry>,
    /// Quirks found in it, counted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
    /// Whether it lists landing pages with their links (Signmap).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signmap: bool,
}

/// An entry of such a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownEntry {
    /// The linked URL.
    pub uri: String,
    /// The declared capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// The hubs that push it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<String>,
}
