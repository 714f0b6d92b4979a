//! Report of the last discovery, for the operator.

use std::collections::BTreeMap;

use jiff::Timestamp;
use resourcesync::{Capability, Root};
use serde::{Deserialize, Serialize};

use crate::{Links, OaiRepository};

/// Report of the last discovery, beyond the sets themselves: the documents on the path, and missing or odd
/// things. Nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiscoveryReport {
    /// When discovery ran.
    pub at: Timestamp,
    /// The documents that were read. Of a list only the head was.
    #[serde(default)]
    pub documents: Vec<VisitedDocument>,
    /// Missing or odd things.
    #[serde(default)]
    pub remarks: Vec<Remark>,
    /// The host's well-known URL (RS-20), if nothing was found there. Absent when it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well_known_missing: Option<String>,
    /// The title of the page at the entry URL, if that was read. At most 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the repository says about itself, if it is one of OAI-PMH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oai: Option<Box<OaiRepository>>,
}

/// A visited document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitedDocument {
    /// Its URL, after redirects.
    pub url: String,
    /// Its capability, if stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// Its root element.
    pub root: Root,
    /// Usable entries. None for a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Whether it has a link `up` (RS-23).
    #[serde(default)]
    pub has_up: bool,
    /// Whether the server sent validators for this version.
    #[serde(default)]
    pub has_validators: bool,
    /// Quirks in the part that was read, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
    /// Its own links: its description, licence, contact and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
}

/// A missing or odd thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The document that it concerns.
    pub url: String,
    /// Its stable code.
    pub hint: String,
    /// The text of the remark.
    pub text: String,
}
