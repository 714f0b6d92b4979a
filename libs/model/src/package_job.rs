//! Jobs for packages of dumps, and their outcomes for each member.

use resourcesync::{Datetime, Link, Metadata, relation};
use serde::{Deserialize, Serialize};

use crate::patch::packaged_patch;
use crate::wire::Message;
use crate::{
    Assurance, Contents, Declaration, Failure, JobId, Links, Origin, ResourceUri, RunId, Seq, SourceId,
    StoredBitstream, Terms, Validators,
};

/// A package of a dump, to be fetched into the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageJob {
    /// The id of the job.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// The Source's request settings.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The number of its plan, and the name of its upload.
    pub seq: Seq,
    /// What was declared; its digest algorithms are computed as the bytes pass.
    #[serde(default)]
    pub declaration: Declaration,
    /// The validators of the version that is already known.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub held: Validators,
}

/// The outcome of a job for a package; the Source's owner settles it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageOutcome {
    /// The id of the job.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// Requests made for it.
    #[serde(default)]
    pub requests: u64,
    /// Time taken, in milliseconds.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// The result.
    pub result: PackageResult,
}

/// The result of a job for a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackageResult {
    /// Received completely and stored; not verified yet.
    Stored(StoredBitstream),
    /// The server says that the known version is the current one.
    NotModified,
    /// Not received completely within the job's time. The received bytes are kept, and the next job resumes
    /// behind them.
    Deferred {
        /// Bytes that are kept.
        received: u64,
    },
    /// Verified, and its manifest read.
    Opened(Contents),
    /// The outcomes of the entries of one slice.
    Slice {
        /// The number of the slice.
        number: u32,
        /// One for each of its entries.
        items: Vec<MemberOutcome>,
        /// Members without an entry in the manifest, reported with the last slice of a package that is read
        /// from its start.
        #[serde(default, skip_serializing_if = "is_zero")]
        unlisted: u64,
        /// The names of the first few of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unlisted_names: Vec<String>,
    },
    /// Another worker unpacked it from the start, and did not reach the end. The outcomes reported so far
    /// stay valid; a job that starts behind the settled ones does the rest.
    Interrupted {
        /// Slices at the start that were settled when the job was sent.
        settled: u32,
    },
    /// Not received, not as declared, or unreadable.
    Failed(Failure),
}

/// An entry of a manifest, as parsed. The owner of the Source decides about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// The resource's URI, as written.
    pub loc: String,
    /// When it was last modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Datetime>,
    /// Its `rs:md`; `path` is the member's name.
    #[serde(default)]
    pub metadata: Metadata,
    /// Its `rs:ln`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// The line of the manifest it begins on, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// Whether a later entry of the manifest is about the same resource. The member is an earlier version then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
}

/// The outcome of one entry of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberOutcome {
    /// The entry.
    pub entry: ManifestEntry,
    /// The result for its member.
    pub result: MemberResult,
    /// The patch that lies in the package in place of the resource, if its bytes are as its link declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<StoredBitstream>>,
}

impl MemberOutcome {
    /// The outcome of an entry.
    pub fn new(entry: ManifestEntry, result: MemberResult) -> Self {
        Self { entry, result, patch: None }
    }
}

impl ManifestEntry {
    /// The link to the patch that lies in the package in place of the resource.
    pub fn patch(&self) -> Option<Link> {
        let links = self.links.as_ref().filter(|links| links.as_str().contains(relation::PATCH))?;
        packaged_patch(&self.metadata, &links.to_vec()).cloned()
    }
}

/// The result for the member that an entry names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberResult {
    /// Verified against the entry's declaration, and fit to be served.
    Verified {
        /// The bitstream, in the package or in a pack.
        stored: StoredBitstream,
        /// How far it was verified.
        assurance: Assurance,
    },
    /// The entry names no member, like that of a deletion.
    NoMember,
    /// The member is missing, not as declared, or unreadable.
    Failed(Failure),
    /// The entry itself is unreadable: the reason as text.
    BadEntry(String),
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Message for PackageJob {
    const KIND: &'static str = "package-job";
    const VERSION: u16 = 1;
}

impl Message for PackageOutcome {
    const KIND: &'static str = "package-outcome";
    const VERSION: u16 = 1;
}
