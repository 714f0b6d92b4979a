//! The catalog's records of a resource.

use std::sync::Arc;

use fixity::{Computed, Digest};
use jiff::Timestamp;
use resourcesync::Change;
use serde::{Deserialize, Serialize};

use crate::{Linked, Links, Location, ProblemReason, Provenance, ResourceUri, RunId, SetId, Validators};

/// What a Source declares of a resource's bitstream (RS-8).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Declaration {
    /// Digests with supported algorithms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// Digests with unsupported algorithms, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<String>,
    /// Length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The Content-Encoding that length and digests refer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The resource's last modification, as the Source states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Timestamp>,
}

/// The document that listed the resource, and the time it refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The document's URI.
    pub document: Arc<str>,
    /// The set it belongs to.
    pub set: SetId,
    /// The kind of change; absent in Resource Lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// When the change happened, if stated (`datetime`, in 1.0 `lastmod`; RS-7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_time: Option<Timestamp>,
    /// The time that this entry refers to: the change's time, or the list's `at` (RS-4). An entry with an
    /// earlier time is not applied over a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// The latest instant that any of the entry's times can mean: its `lastmod`, its change, the list's `at`
    /// and `completed`. A version modified after it is certainly not the declared one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
    /// The entry's links to mirrors, metadata, versions and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// The link that leads to it, if no list names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<Box<Linked>>,
}

impl Listing {
    /// The listing of a settled version, with the links that it inherits. A Change List need not repeat them, so
    /// silence in an entry of a change removes nothing; an entry of a list replaces them all.
    #[must_use]
    pub fn inheriting(self, before: Option<&Self>) -> Self {
        if self.links.is_some() || self.change.is_none() || self.linked.is_some() {
            return self;
        }
        let inherited = |before: &Self| before.links.as_ref()?.inherited(&before.document);
        Self { links: before.and_then(inherited), ..self }
    }

    /// The links, each with the document that gave it (`document`).
    pub fn shown_links(&self) -> Option<Links> {
        self.links.as_ref().map(|links| links.shown(&self.document))
    }

    /// The same listing with the links of another one, which another document may have given.
    #[must_use]
    pub fn with_links_of(&self, other: &Self) -> Self {
        let is_same = self.document == other.document;
        let links = other.links.as_ref();
        let links = links.map(|links| if is_same { links.clone() } else { links.given_by(&other.document) });
        Self { links, ..self.clone() }
    }
}

/// A Content-Encoding as it is stored: in lower case. None for `identity`, the absence of any (RFC 9110,
/// section 8.4.1).
pub fn content_coding(declared: &str) -> Option<String> {
    let coding = declared.trim().to_ascii_lowercase();
    (!coding.is_empty() && coding != "identity").then_some(coding)
}

/// A verified bitstream that may be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bitstream {
    /// Its location.
    pub location: Location,
    /// Its length and digests, computed while it was received; sha-256 is always among them.
    pub computed: Computed,
    /// How far it was verified.
    pub assurance: Assurance,
    /// The media type the server sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The Content-Encoding of the stored bytes, in lower case; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The server's validators, for conditional requests.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// The URL of the bytes, if redirects led elsewhere; without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// When it was stored and verified.
    pub stored_at: Timestamp,
}

/// How far a bitstream could be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assurance {
    /// A declared digest matches the bytes.
    Digest,
    /// Only a declared length matches the bytes.
    Length,
    /// Nothing was declared; the response was complete.
    None,
}

/// The catalog's record of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRecord {
    /// The verified bitstream; absent in a tombstone (a resource that was deleted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitstream: Option<Bitstream>,
    /// Its declaration.
    #[serde(default)]
    pub declaration: Declaration,
    /// The entry that led to this state.
    pub listing: Listing,
    /// The sets that list it.
    pub sets: Vec<SetId>,
    /// In a tombstone: the deleted version, while its bytes are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Bitstream>,
    /// In a tombstone: when the bytes of the deleted version were removed, some time after the deletion. It
    /// cannot be restored any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collected: Option<Timestamp>,
    /// A Resource List that was read to its end omitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Absence>,
    /// When this record was written. A tombstone keeps the time of the first deletion, if a later one is told again.
    pub settled_at: Timestamp,
}

/// The stored version of a resource: the few fields of its [`ResourceRecord`] that a comparison of all
/// resources needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Holding {
    /// The verified bitstream; absent in a tombstone.
    #[serde(default)]
    pub bitstream: Option<HeldBitstream>,
    /// The sets that list it.
    pub sets: Vec<SetId>,
    /// The first list that omitted it.
    #[serde(default)]
    pub absent: Option<Absence>,
    /// The entry that led to this state.
    pub listing: HeldListing,
}

/// The links of a stored version, and the link that led to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct HeldListing {
    /// As in [`Listing`].
    #[serde(default)]
    pub links: Option<Links>,
    /// As in [`Listing`].
    #[serde(default)]
    pub linked: Option<Box<Linked>>,
}

/// Location, length and digests of a bitstream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HeldBitstream {
    /// As in [`Bitstream`].
    pub location: Location,
    /// As in [`Bitstream`].
    pub computed: Computed,
}

/// The first list that omitted a resource. It alone deletes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// The list.
    pub document: String,
    /// The list's `at`: only a list with a later time confirms the absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// When it was found.
    pub seen_at: Timestamp,
}

/// One line of a Source's change log: an event of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeLogEntry {
    /// The resource.
    pub uri: ResourceUri,
    /// The event.
    #[serde(flatten)]
    pub event: ChangeEvent,
    /// When it was settled.
    pub at: Timestamp,
    /// The run that settled it.
    pub run: RunId,
    /// The document that caused it.
    pub document: Arc<str>,
    /// Location of the bitstream that it stored before and dropped. A reader may still use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed: Option<Location>,
    /// Locations of kept versions that were dropped. A reader may still use them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freed_versions: Vec<Location>,
    /// Why it happened.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub account: Provenance,
}

impl ChangeLogEntry {
    /// A line without freed locations and without an account.
    #[must_use]
    pub fn new(uri: ResourceUri, event: ChangeEvent, at: Timestamp, run: RunId, document: Arc<str>) -> Self {
        Self {
            uri,
            event,
            at,
            run,
            document,
            freed: None,
            freed_versions: Vec::new(),
            account: Provenance::default(),
        }
    }
}

/// An event of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum ChangeEvent {
    /// First stored.
    Created {
        /// The content's digest.
        sha256: fixity::Sha256,
    },
    /// A new version was stored over an earlier one.
    Updated {
        /// The content's digest.
        sha256: fixity::Sha256,
        /// The digest of the earlier version.
        before: fixity::Sha256,
    },
    /// The Source deleted it.
    Deleted {
        /// Whether it was absent from its list, and not reported as deleted.
        #[serde(default)]
        absent: bool,
    },
    /// The operator undid its deletion.
    Restored {
        /// The content's digest.
        sha256: fixity::Sha256,
    },
    /// The stored version was damaged, missing, or not as recorded, and was replaced.
    Healed {
        /// The digest of the new version, which was verified.
        sha256: fixity::Sha256,
        /// The digest in the earlier record. The same if only the bytes were damaged.
        before: fixity::Sha256,
    },
    /// The stored version is the Source's current one, after failed attempts.
    Confirmed {
        /// The content's digest.
        sha256: fixity::Sha256,
    },
    /// The operator ignores its problem.
    Ignored {
        /// The note.
        note: String,
    },
    /// The operator queued its problem for a retry.
    Retried,
    /// A kept version was found damaged or missing, and its bytes were discarded.
    VersionLost {
        /// The expected digest.
        sha256: fixity::Sha256,
        /// The start of its time as the stored version.
        from: Timestamp,
        /// The end of that time.
        until: Timestamp,
        /// The diagnosis of the stored bytes.
        message: String,
    },
    /// It could not be brought in sync.
    Problem {
        /// The reason.
        reason: ProblemReason,
        /// The message.
        message: String,
    },
}

impl ResourceRecord {
    /// Whether a bitstream is stored.
    pub fn is_present(&self) -> bool {
        self.bitstream.is_some()
    }
}
