//! Lists of an OAI-PMH repository, and how far each is harvested.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::SelectionId;

/// One list of records: of a repository, in one metadata format, of one set or of all. Each is a set of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OaiList {
    /// The base URL, as the operator gave it: the URIs of all records begin with it.
    pub base: String,
    /// The `metadataPrefix`.
    pub prefix: String,
    /// The `setSpec`; none for all records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Whether `from` and `until` may be seconds. Days work everywhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_seconds: bool,
    /// What the repository tells about deletions.
    pub deletions: OaiDeletions,
    /// `earliestDatestamp`, if it is a time. It only says where to cut a window that is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    /// How far it is harvested.
    #[serde(default)]
    pub progress: OaiProgress,
}

/// What a repository tells about deletions (`deletedRecord`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OaiDeletions {
    /// Nothing: records vanish.
    #[default]
    No,
    /// Some of them, and perhaps not for ever.
    Transient,
    /// All of them, for ever.
    Persistent,
}

/// How far a list is harvested.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OaiProgress {
    /// The first `responseDate` of the last list that was read to its end. The next list begins some time before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Timestamp>,
    /// When the last list of all identifiers, or of all records, was read to its end, by our clock: that of a repository
    /// may stand still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept_at: Option<Timestamp>,
    /// Whether the last list of all records may have skipped some, so that all identifiers are compared soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compare_soon: bool,
    /// Whether a record changed without a new datestamp, so that all records are listed soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub records_soon: bool,
    /// Whether it lists no identifiers, so that records are listed in their place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_identifiers: bool,
    /// Whether the repository promised a wrong number of records in two runs. Its numbers are not believed any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub miscounts: bool,
    /// Whether a list from and until the datestamp of a record had that record. Without that proof, windows overlap.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inclusive_bounds: bool,
    /// Whether a compressed answer came broken. Answers are asked for without compression since then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncompressed: bool,
    /// The newest datestamp that a list had. Another list of that time without it is an old answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// How late records were in the last lists of changes, in seconds: how long before the cursor a record was stamped
    /// that no earlier list had. Lists overlap by twice as much, and by a day at least.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<u32>,
    /// How it takes resumption tokens.
    #[serde(default, skip_serializing_if = "OaiTokens::are_usual")]
    pub tokens: OaiTokens,
    /// Whether a token was taken: one that is refused has expired then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_work: bool,
    /// Windows that could not be read. Each run tries them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<OaiGap>,
    /// The list that is being read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<OaiReading>,
    /// A list of all records that was not read to its end when a list of changes began. It goes on later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<OaiReading>,
}

/// How a repository takes resumption tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OaiTokens {
    /// As the protocol says: percent-encoded, and nothing beside them.
    #[default]
    Encoded,
    /// It prints them percent-encoded: they are decoded, and then encoded.
    Decoded,
    /// As printed, without encoding.
    Verbatim,
    /// With the `metadataPrefix` beside them.
    WithPrefix,
}

impl OaiTokens {
    /// Whether it is the way of the protocol.
    pub fn are_usual(&self) -> bool {
        *self == Self::Encoded
    }

    /// The way to try next.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Encoded => Some(Self::Decoded),
            Self::Decoded => Some(Self::Verbatim),
            Self::Verbatim => Some(Self::WithPrefix),
            Self::WithPrefix => None,
        }
    }
}

/// A window that could not be read: which records changed in it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OaiGap {
    /// The first datestamp; none from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The last datestamp, inclusive; none until now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When it was found unreadable for the first time.
    pub since: Timestamp,
    /// Why the last attempt failed.
    pub why: String,
    /// How many records came of it, if it was read and the repository promised more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<u64>,
}

/// A list that is being read, window by window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OaiReading {
    /// What is asked for.
    pub kind: OaiReadingKind,
    /// The options that select its records.
    pub selection: SelectionId,
    /// The `responseDate` of its first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// Windows that are not read to their end, from old to new.
    pub waiting: Vec<OaiWindow>,
    /// How many windows may be read at the same time. 0 before their number was decided: one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parallel: u32,
    /// The next page of the first window, as earlier versions wrote it. It is read and never written.
    #[serde(default, skip_serializing)]
    pub page: Option<OaiPage>,
    /// Records delivered so far, deleted ones too.
    #[serde(default)]
    pub records: u64,
    /// Records among them that could not be read.
    #[serde(default)]
    pub bad: u64,
    /// Whether a token was an offset into the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offsets: bool,
    /// Whether a record came that changed since the list began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// Whether something is in doubt, so that nothing is concluded from what the list omits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
    /// Whether it is an old answer, of a cache: an earlier list had a newer record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub old: bool,
    /// How late its latest record was, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u32,
    /// When changes were read before it ended, for the first time, by our clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Timestamp>,
}

/// What a list asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OaiReadingKind {
    /// All records.
    Records,
    /// The records that changed since the last list.
    Changes,
    /// All identifiers, to find out which records are gone.
    Identifiers,
}

/// A window of datestamps. Both ends are inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OaiWindow {
    /// The first datestamp; none from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The last datestamp; none until now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How often the first window was halved until this one came out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub halvings: u32,
    /// How often it was begun anew.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// How many records the last reading to its end delivered, if the repository promised more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<u64>,
    /// The same, of an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_before: Option<u64>,
    /// Whether its records are asked for one by one, since a list of them failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_by_one: bool,
    /// Whether it is read when all others are: it has what changed while they were read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// Its next page; none before its first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<OaiPage>,
}

impl OaiWindow {
    /// Whether both windows have the same datestamps. A list has no two such windows.
    pub fn is(&self, other: &Self) -> bool {
        (self.from, self.until) == (other.from, other.until)
    }
}

/// The next page of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OaiPage {
    /// The resumption token that asks for it.
    pub token: String,
    /// Pages read before it.
    pub number: u64,
    /// Records delivered before it, deleted ones too.
    pub delivered: u64,
    /// The largest `completeListSize` seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<u64>,
    /// Empty pages directly before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub empty: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a repository says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OaiRepository {
    /// The base URL, as the operator gave it.
    pub base: String,
    /// Its name for people.
    pub name: String,
    /// The base URL as the repository writes it, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_base: Option<String>,
    /// Its granularity, as it writes it.
    pub granularity: String,
    /// What it tells about deletions.
    pub deletions: OaiDeletions,
    /// `earliestDatestamp`, as it is written; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub earliest: String,
    /// The metadata formats that it offers.
    #[serde(default)]
    pub formats: Vec<OaiFormat>,
    /// The metadata format that is harvested.
    pub prefix: String,
    /// The sets that it offers, as far as one page lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<OaiSet>,
    /// Whether it offers more sets than that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_sets: bool,
    /// The Source Description of ResourceSync at its host, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resourcesync: Option<String>,
    /// Quirks of these answers, counted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
}

/// A metadata format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OaiFormat {
    /// The `metadataPrefix`.
    pub prefix: String,
    /// The namespace of its documents.
    pub namespace: String,
    /// What its records name, if the format is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<OaiNamed>,
}

/// What the records of a metadata format name of their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OaiNamed {
    /// Files, with lengths and digests.
    FilesWithDigests,
    /// Files.
    Files,
    /// Landing pages; files where a repository lists them in step with their formats.
    Pages,
}

/// A set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OaiSet {
    /// The `setSpec`.
    pub spec: String,
    /// Its name for people.
    pub name: String,
}

impl OaiFormat {
    /// The prefix, and what its records name, for people.
    pub fn told(&self) -> String {
        match self.names {
            Some(names) => format!("{} ({})", self.prefix, names.as_str()),
            None => self.prefix.clone(),
        }
    }
}

impl OaiNamed {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FilesWithDigests => "files with digests",
            Self::Files => "files",
            Self::Pages => "landing pages",
        }
    }
}

impl OaiDeletions {
    /// As the protocol writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Transient => "transient",
            Self::Persistent => "persistent",
        }
    }
}
