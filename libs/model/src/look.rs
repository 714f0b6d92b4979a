//! The last look at what a Source offers, as far as a person should hear of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use resourcesync::{Capability, Root};
use serde::{Deserialize, Serialize};

/// What discovery saw when it last looked, beyond the sets themselves: the documents on the way, and what is missing or odd.
/// Nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LookRecord {
    /// When that was.
    pub at: Timestamp,
    /// The documents that were read on the way. Of a list only the head was.
    #[serde(default)]
    pub documents: Vec<LookedAt>,
    /// What is missing or odd.
    #[serde(default)]
    pub remarks: Vec<Remark>,
    /// The host's well-known place (RS-20), where nothing was found there. Absent where nobody had to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well_known_missing: Option<String>,
}

/// A document on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedAt {
    /// Its URL, after redirects.
    pub url: String,
    /// Its capability, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// Its root element.
    pub root: Root,
    /// Entries that can be used. None of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Whether it has a link `up` (RS-23).
    #[serde(default)]
    pub has_up: bool,
    /// Whether the server gave something to recognise this version by.
    #[serde(default)]
    pub has_validators: bool,
    /// What is odd in as much of it as was read, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
}

/// Something that is missing or odd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The document that it is about.
    pub url: String,
    /// Its stable name.
    pub hint: String,
    /// The same in words.
    pub text: String,
}
