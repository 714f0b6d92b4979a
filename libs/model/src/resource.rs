//! What the catalog knows of a resource.

use std::sync::Arc;

use fixity::{Computed, Digest};
use jiff::Timestamp;
use resourcesync::Change;
use serde::{Deserialize, Serialize};

use crate::{Account, Location, ProblemReason, ResourceUri, RunId, SetId, Validators};

/// What a Source declares of a resource's bitstream (RS-8).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Declaration {
    /// Digests we can judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// Digest values kept as written because we cannot judge them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<String>,
    /// Length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The Content-Encoding that length and digests were taken with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The resource's last modification, as the Source gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Timestamp>,
}

/// Which document spoke of the resource, and of which moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The document's URI.
    pub document: Arc<str>,
    /// The set it belongs to.
    pub set: SetId,
    /// The kind of change; absent in Resource Lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// When the change happened, where the Source says so (`datetime`, in 1.0 `lastmod`; RS-7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_time: Option<Timestamp>,
    /// The moment up to which this entry speaks: the change's time, or the list's `at` (RS-4).
    /// An entry that speaks of an earlier moment is not applied over a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// The last instant that any of the entry's moments can mean: its `lastmod`, its change, the list's `at` and `completed`.
    /// A version modified after it is certainly not the one declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
}

/// A Content-Encoding as it is kept with bytes: in lower case. None for the absence of any, which is `identity`
/// (RFC 9110, section 8.4.1).
pub fn content_coding(declared: &str) -> Option<String> {
    let coding = declared.trim().to_ascii_lowercase();
    (!coding.is_empty() && coding != "identity").then_some(coding)
}

/// A bitstream that was judged and may be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bitstream {
    /// Where it lies.
    pub location: Location,
    /// Its length and digests, computed as it was received; sha-256 is always among them.
    pub computed: Computed,
    /// How much the Source let us prove.
    pub assurance: Assurance,
    /// The media type the server sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The Content-Encoding of the bytes as they are stored, in lower case; absent where they are not encoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The server's validators, for conditional requests.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// The URL the bytes came from, where redirects led elsewhere; without what is secret in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// When it was stored and judged.
    pub stored_at: Timestamp,
}

/// How much the Source let us prove of a bitstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assurance {
    /// A declared digest agrees with the bytes.
    Digest,
    /// Only a declared length agrees with the bytes.
    Length,
    /// Nothing was declared; the response was complete.
    None,
}

/// What the catalog knows of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRecord {
    /// The verified bitstream; absent in a tombstone (a resource that was deleted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitstream: Option<Bitstream>,
    /// What was declared of it.
    #[serde(default)]
    pub declaration: Declaration,
    /// The entry that brought it to this state.
    pub listing: Listing,
    /// The sets that list it.
    pub sets: Vec<SetId>,
    /// In a tombstone: what was held, for as long as its bytes are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Bitstream>,
    /// In a tombstone: when the bytes of what was held were given up, some time after the deletion. It cannot be restored any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collected: Option<Timestamp>,
    /// A Resource List that was read whole did not name it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Absence>,
    /// When this record was written.
    pub settled_at: Timestamp,
}

/// What is held of a resource: the few fields of its [`ResourceRecord`] that a comparison of all resources needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Holding {
    /// The verified bitstream; absent in a tombstone.
    #[serde(default)]
    pub bitstream: Option<HeldBitstream>,
    /// The sets that list it.
    pub sets: Vec<SetId>,
    /// The first sighting of its absence.
    #[serde(default)]
    pub absent: Option<Absence>,
}

/// Where a bitstream lies, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HeldBitstream {
    /// As in [`Bitstream`].
    pub location: Location,
    /// As in [`Bitstream`].
    pub computed: Computed,
}

/// The first sighting of a resource's absence. Alone it deletes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// The list that does not name it.
    pub document: String,
    /// The list's `at`: only a list of a later moment confirms the absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// When that was seen.
    pub seen_at: Timestamp,
}

/// One line of a Source's change log: what happened to a resource here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeLogEntry {
    /// The resource.
    pub uri: ResourceUri,
    /// What happened.
    #[serde(flatten)]
    pub event: ChangeEvent,
    /// When it was settled here.
    pub at: Timestamp,
    /// The run that did it.
    pub run: RunId,
    /// The document that asked for it.
    pub document: Arc<str>,
    /// Where the bitstream lies that it held before and does not any more. Somebody may be reading it still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed: Option<Location>,
    /// Where versions lie that were kept and are not any more: the same holds for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freed_versions: Vec<Location>,
    /// How it came to this.
    #[serde(default, skip_serializing_if = "Account::is_empty")]
    pub account: Account,
}

impl ChangeLogEntry {
    /// A line that frees nothing, and has no account.
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
            account: Account::default(),
        }
    }
}

/// What happened to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum ChangeEvent {
    /// First stored.
    Created {
        /// The content's digest.
        sha256: fixity::Sha256,
    },
    /// Stored anew over an earlier version.
    Updated {
        /// The content's digest.
        sha256: fixity::Sha256,
        /// The version before.
        before: fixity::Sha256,
    },
    /// The Source deleted it.
    Deleted {
        /// It did not say so: the resource was absent from its list.
        #[serde(default)]
        absent: bool,
    },
    /// The operator undid its deletion.
    Restored {
        /// The content's digest.
        sha256: fixity::Sha256,
    },
    /// What was held of it was damaged, missing, or not what its record says, and was replaced.
    Healed {
        /// The digest of what is held now, which was verified.
        sha256: fixity::Sha256,
        /// The digest in the record before. The same where only the bytes were at fault.
        before: fixity::Sha256,
    },
    /// What is held is what the Source has, after attempts that failed.
    Confirmed {
        /// The content's digest.
        sha256: fixity::Sha256,
    },
    /// The operator said that nothing is to be done about its problem.
    Ignored {
        /// Why.
        note: String,
    },
    /// The operator had its problem queued again.
    Retried,
    /// An earlier version that was kept was found damaged or missing, and its bytes were given up.
    VersionLost {
        /// The digest that it had.
        sha256: fixity::Sha256,
        /// From when on it was held.
        from: Timestamp,
        /// Until when.
        until: Timestamp,
        /// What was found in its place.
        message: String,
    },
    /// It could not be brought in step.
    Problem {
        /// Why.
        reason: ProblemReason,
        /// The same in words.
        message: String,
    },
}

impl ResourceRecord {
    /// Whether a bitstream is held.
    pub fn is_present(&self) -> bool {
        self.bitstream.is_some()
    }
}
