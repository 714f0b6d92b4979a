//! Jobs: messages with work for other services.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::stored_bitstream::StoredBitstream;
use crate::{
    Declaration, JobId, Location, Origin, PatchItem, PatchUse, ResourceUri, RunId, Seq, SourceId, Terms,
    Validators,
};

/// Resources of one origin, to be fetched one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchJob {
    /// The id of the job.
    pub id: JobId,
    /// The Source they belong to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// The Source's request settings.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
    /// The resources, in this order.
    pub items: Vec<FetchItem>,
}

/// One resource to be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchItem {
    /// The resource.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// What was declared; its digest algorithms are computed as the bytes pass.
    #[serde(default)]
    pub declaration: Declaration,
    /// The latest time that the listing refers to ([`Listing::latest`](crate::Listing::latest)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_until: Option<Timestamp>,
    /// The validators of the stored version, for a declaration that decides nothing.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub held: Validators,
    /// The stored bytes are not to be relied on: the received ones are written even where an object of this
    /// name exists.
    #[serde(rename = "mend", default, skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
    /// The media type of the stored version, for a declaration that decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_type: Option<String>,
    /// The mirror to request, in place of the resource's own URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ResourceUri>,
    /// Patches that may make it from the stored version, in place of a request for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<PatchItem>>,
}

/// Fetched resources, to be verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyJob {
    /// The id of the fetch job.
    pub id: JobId,
    /// The Source they belong to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin they come from.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// One for each item of the fetch job, in its order.
    pub items: Vec<Fetched>,
    /// Requests made for them.
    pub requests: u64,
    /// Time taken, in milliseconds.
    pub elapsed_ms: u64,
    /// The objects that the job has put, each as the location of a whole object. The store has acknowledged their
    /// bytes, so they need not be asked for again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put: Vec<Location>,
}

/// The result of one item of a fetch job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// The resource.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// What was declared.
    #[serde(default)]
    pub declaration: Declaration,
    /// The latest time that the listing refers to ([`Listing::latest`](crate::Listing::latest)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_until: Option<Timestamp>,
    /// The result.
    pub result: FetchedResult,
    /// What became of its patches, if the item had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<PatchUse>>,
}

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a failure is rare, and only a few strings larger")]
pub enum FetchedResult {
    /// Received completely and stored; not verified yet.
    Stored(Arc<StoredBitstream>),
    /// Received in an earlier run and kept as a candidate; its bytes were not read since.
    Kept(Arc<StoredBitstream>),
    /// The server says that the stored version is the current one.
    NotModified,
    /// Not fetched within the job's time.
    Deferred,
    /// Not received.
    Failed(Failure),
}
