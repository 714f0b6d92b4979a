//! The report card: one object, the same for whoever serves it. Names are stable.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{Mode, Phase, ProblemReason, Subject};
use serde::Serialize;

use crate::Finding;

/// The format's number; it counts up when a name changes its meaning.
pub(crate) const FORMAT: u32 = 1;

/// All that is to be said of a Source to whoever runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReportCard {
    /// The number of this format.
    pub format: u32,
    /// Which Source.
    pub source: Source,
    /// When it was last looked at.
    pub looked_at: Looked,
    /// Its sets of resources.
    pub sets: Vec<Set>,
    /// Its documents, as far as they are in use: Source Description and Capability Lists, then lists in the order of their URIs.
    /// The first 1,000.
    pub documents: Vec<Document>,
    /// How many more documents there are.
    pub documents_left_out: u64,
    /// What to change, the gravest first.
    pub findings: Vec<Finding>,
    /// Everything that had to be tolerated in these documents, by the names of `docs/QUIRKS.md`.
    pub quirks: BTreeMap<String, u64>,
    /// What is listed, and what became of it.
    pub coverage: Coverage,
    /// What is declared of the resources that are held.
    pub fixity: Fixity,
    /// What could not be brought in step, by reason.
    pub problems: Vec<ProblemGroup>,
    /// Problems about which nothing is to be done, by the harvester's word. They are no findings, and count apart.
    pub ignored: Vec<ProblemGroup>,
    /// What a harvester is known by that a bot defence did not let in; absent where none stood in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_let_in: Option<ToLetIn>,
}

/// What a Source's bot defence needs to let a harvester in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToLetIn {
    /// The `User-Agent` of its requests, which names whom to ask about them.
    pub user_agent: Option<String>,
    /// The origins whose bot defence answered. The first ten.
    pub origins: Vec<String>,
}

/// Which Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Source {
    /// Its name.
    pub id: String,
    /// The way in, without credentials.
    pub url: String,
}

/// When it was last looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Looked {
    /// When its Source Description and Capability Lists were last read.
    pub discovered_at: Option<Timestamp>,
    /// The last run, or the one under way.
    pub run: Option<LastRun>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LastRun {
    /// What it does.
    pub mode: Mode,
    /// Where it stands.
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
    /// The URI that stands for it: that of its Capability List, or of the document that is all of it.
    pub set: String,
    /// What it offers.
    pub capabilities: Vec<Capability>,
    /// `at` of the Resource List that was last read whole.
    pub baseline_at: Option<Timestamp>,
    /// Up to which moment it is synchronized.
    pub synchronized_to: Option<Timestamp>,
    /// Of which time its change documents tell; absent when none was read that says so.
    pub changes: Option<ChangeCoverage>,
}

/// One capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Capability {
    /// What it is.
    pub capability: String,
    /// The document's URI.
    pub uri: String,
}

/// The time of which a set's change documents tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChangeCoverage {
    /// The earliest `from`.
    pub from: Timestamp,
    /// The latest `until`, or the latest change that an open document tells.
    pub to: Timestamp,
    /// Whether a document is open (RS-5).
    pub open: bool,
    /// Time in between of which no document tells, oldest first. The first ten.
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
    /// The set it belongs to; absent for what stands above the sets.
    pub set: Option<String>,
    /// Its capability. A sitemap without one is what it was read as.
    pub kind: String,
    /// Whether it is an index; absent when it was never read.
    pub index: Option<bool>,
    /// How far it was read: `queued`, `reading`, `done`, `failed`, or `seen` by discovery only.
    pub state: &'static str,
    /// Entries it had when it was last read whole.
    pub entries: Option<u64>,
    /// Entries among them that could not be read.
    pub bad: u64,
    /// `at` of its metadata, where it can be told for certain.
    pub at: Option<Timestamp>,
    /// `from`, likewise.
    pub from: Option<Timestamp>,
    /// `until`, likewise.
    pub until: Option<Timestamp>,
    /// Of a change document: whether it is closed (RS-5).
    pub closed: Option<bool>,
    /// Whether the server gave something to recognise its version by; absent when that is not known.
    pub validators: Option<bool>,
    /// Whether something about it forbids to conclude anything from what it does not name.
    pub doubtful: bool,
    /// What had to be tolerated in it.
    pub quirks: BTreeMap<String, u64>,
}

/// What is listed, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Coverage {
    /// Entries of the Resource Lists; absent when none was read whole.
    pub listed: Option<u64>,
    /// Resources held: fetched, and verified as far as the declaration allows.
    pub held: u64,
    /// Resources still to be fetched or deleted.
    pub pending: u64,
    /// Resources that could not be brought in step for a reason that lies with the Source or between.
    pub problems: u64,
    /// Such resources about which nothing is to be done, by the harvester's word.
    pub ignored: u64,
    /// Resources held that the lists do not name any more.
    pub absent: u64,
    /// Resources held that are of other sites than the Source's way in, for which it cannot vouch.
    pub foreign: u64,
    /// Resources that were deleted.
    pub deleted: u64,
    /// Problems that lie with the harvester, and are not the Source's.
    pub own_problems: u64,
}

/// What is declared of the resources that are held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fixity {
    /// Resources looked at: all that are held.
    pub resources: u64,
    /// Resources with a digest that can be judged.
    pub digest: u64,
    /// Resources with a length, and no such digest.
    pub length_only: u64,
    /// Resources with neither.
    pub nothing: u64,
    /// Resources with a `hash` value that cannot be judged.
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
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// What happened.
    pub message: String,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When it was last seen.
    pub last_seen: Timestamp,
}
