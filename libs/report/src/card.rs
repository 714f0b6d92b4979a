//! The report card: one object, the same for every service that returns it. Names are stable.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{Mode, Phase, ProblemReason, Subject};
use serde::Serialize;

use crate::Finding;
use crate::copies::Copies;

/// The version of the format. It increases when a name changes its meaning.
pub(crate) const FORMAT: u32 = 1;

/// The report card for the operator of a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReportCard {
    /// The version of the format.
    pub format: u32,
    /// The Source.
    pub source: Source,
    /// When it was last read.
    pub looked_at: Looked,
    /// Its sets of resources.
    pub sets: Vec<Set>,
    /// Its documents that are in use: Source Description and Capability Lists, then lists in the order of their URIs.
    /// The first 1,000.
    pub documents: Vec<Document>,
    /// How many more documents there are.
    pub documents_left_out: u64,
    /// What to change, the most severe first.
    pub findings: Vec<Finding>,
    /// All quirks of these documents, by the names of `docs/QUIRKS.md`.
    pub quirks: BTreeMap<String, u64>,
    /// Links of the documents themselves: descriptions, licences, contacts and others. The first 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub document_links: Vec<DocumentLink>,
    /// How many links the stored resources have, by relation. The first 50 relations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, u64>,
    /// How many resources such links lead to that no list names, by relation: `item`, `describedby`, `describes`,
    /// `alternate` and `canonical`. Absent where there are more than 10,000,000 of these links, or more than
    /// 2 GiB of the URIs that they lead to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlisted_targets: Option<BTreeMap<String, u64>>,
    /// Collections that stored resources belong to, those with the most resources first. The first 50, of the first
    /// 2,000 that are met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<Collection>,
    /// How many more of these collections there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub collections_left_out: u64,
    /// Stored resources whose bytes other origins than their own gave, by that origin: mirrors, and targets of
    /// redirects. The first 50 origins.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub from_elsewhere: BTreeMap<String, Given>,
    /// Resources that other Sources of the store brought too, from the same first Source (`via`). Only where the store
    /// is read, and of at most 20 other Sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Copies>,
    /// What is listed, and the state of it.
    pub coverage: Coverage,
    /// The declarations of the stored resources.
    pub fixity: Fixity,
    /// Resources and documents that could not be brought in sync, by reason.
    pub problems: Vec<ProblemGroup>,
    /// Problems that the operator of the harvester ignores. They are no findings, and are counted separately.
    pub ignored: Vec<ProblemGroup>,
    /// How to recognise the harvester that a bot defence blocked. Absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_let_in: Option<ToLetIn>,
}

/// A collection, as links of resources name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Collection {
    /// Its URI.
    pub uri: String,
    /// Stored resources that belong to it.
    pub resources: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What an origin gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Given {
    /// Stored resources.
    pub resources: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A link of a document itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DocumentLink {
    /// The document.
    pub document: String,
    /// The relation.
    pub rel: String,
    /// The target.
    pub href: String,
}

/// What a Source's bot defence needs to let a harvester in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToLetIn {
    /// The `User-Agent` of its requests, with a contact.
    pub user_agent: Option<String>,
    /// The origins whose bot defence responded. The first ten.
    pub origins: Vec<String>,
}

/// The Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Source {
    /// The Source ID.
    pub id: String,
    /// The entry URL, without credentials.
    pub url: String,
    /// How it is harvested.
    pub protocol: Protocol,
}

/// How a Source is harvested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// By ResourceSync, sitemaps or landing pages.
    #[serde(rename = "resourcesync")]
    ResourceSync,
    /// By OAI-PMH.
    OaiPmh,
}

/// When the Source was last read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Looked {
    /// When its Source Description and Capability Lists were last read.
    pub discovered_at: Option<Timestamp>,
    /// The last run, or the current one.
    pub run: Option<LastRun>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LastRun {
    /// Its mode.
    pub mode: Mode,
    /// Its phase.
    pub phase: Phase,
    /// When it began.
    pub began_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A set of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Set {
    /// The URI that identifies it: that of its Capability List, or of the only document of the set.
    pub set: String,
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
    /// `at` of the Resource List that was last read completely.
    pub baseline_at: Option<Timestamp>,
    /// The time up to which it is synchronized.
    pub synchronized_to: Option<Timestamp>,
    /// The time that its change documents cover. Absent when no such document that states it was read.
    pub changes: Option<ChangeCoverage>,
}

/// A capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Capability {
    /// Its name.
    pub capability: String,
    /// The URI of the document.
    pub uri: String,
}

/// The time that the change documents of a set cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChangeCoverage {
    /// The earliest `from`.
    pub from: Timestamp,
    /// The latest `until`, or the latest change of an open document.
    pub to: Timestamp,
    /// Whether a document is open (RS-5).
    pub open: bool,
    /// Gaps in between, which no document covers, oldest first. The first ten.
    pub gaps: Vec<Interval>,
    /// How many gaps there are.
    pub gap_count: u64,
}

/// An interval of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Interval {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub until: Timestamp,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Document {
    /// Its URI.
    pub uri: String,
    /// The set it belongs to; absent for documents above the sets.
    pub set: Option<String>,
    /// Its capability. For a sitemap without one, the kind that it was read as.
    pub kind: String,
    /// Whether it is an index; absent when it was never read.
    pub index: Option<bool>,
    /// How far it was read: `queued`, `reading`, `done`, `failed`, or `seen` by discovery only.
    pub state: &'static str,
    /// Its entries when it was last read completely.
    pub entries: Option<u64>,
    /// Entries among them that could not be read.
    pub bad: u64,
    /// `at` of its metadata, if unambiguous.
    pub at: Option<Timestamp>,
    /// `from`, likewise.
    pub from: Option<Timestamp>,
    /// `until`, likewise.
    pub until: Option<Timestamp>,
    /// For a change document: whether it is closed (RS-5).
    pub closed: Option<bool>,
    /// Whether the server sent an HTTP validator for it; absent when that is not known.
    pub validators: Option<bool>,
    /// Whether a quirk of it forbids conclusions from entries that it omits.
    pub doubtful: bool,
    /// Its quirks.
    pub quirks: BTreeMap<String, u64>,
}

/// What is listed, and the state of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Coverage {
    /// Entries of the Resource Lists; absent when none was read completely.
    pub listed: Option<u64>,
    /// Stored resources: fetched, and verified as far as the declaration allows.
    pub held: u64,
    /// Resources still to be fetched or deleted.
    pub pending: u64,
    /// Resources that could not be brought in sync, for a reason at the Source or on the network.
    pub problems: u64,
    /// Such resources that the operator of the harvester ignores.
    pub ignored: u64,
    /// Stored resources that the lists do not name any more.
    pub absent: u64,
    /// Stored resources from other sites than the Source's entry URL, for which it cannot vouch.
    pub foreign: u64,
    /// Resources that were deleted.
    pub deleted: u64,
    /// Problems of the harvester itself, which the Source did not cause.
    pub own_problems: u64,
}

/// The declarations of the stored resources.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fixity {
    /// Resources that were counted: all stored ones.
    pub resources: u64,
    /// Resources with a digest that can be verified.
    pub digest: u64,
    /// Resources with a length, and no such digest.
    pub length_only: u64,
    /// Resources with neither.
    pub nothing: u64,
    /// Resources with a `hash` value that cannot be verified.
    pub unjudged: u64,
    /// Resources with a `lastmod`.
    pub lastmod: u64,
    /// How often each algorithm is used.
    pub algorithms: BTreeMap<&'static str, u64>,
}

/// Problems of one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProblemGroup {
    /// The reason.
    pub reason: ProblemReason,
    /// How many there are.
    pub count: u64,
    /// The first three.
    pub examples: Vec<Problem>,
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Problem {
    /// Its subject.
    #[serde(flatten)]
    pub subject: Subject,
    /// What happened.
    pub message: String,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When it was last seen.
    pub last_seen: Timestamp,
}
