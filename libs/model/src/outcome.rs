//! Outcomes: the pipeline's result for each resource.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::stored_bitstream::StoredBitstream;
use crate::{Assurance, JobId, Origin, PatchUse, ResourceUri, RunId, Seq, SourceId};

/// The outcomes of one job's resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// The id of the job.
    pub id: JobId,
    /// The Source they belong to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin they come from.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// One for each item of the job.
    pub items: Vec<Outcome>,
    /// Requests made for them.
    pub requests: u64,
    /// Time the fetch took, in milliseconds.
    pub elapsed_ms: u64,
}

/// The outcome of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The resource.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// The result.
    pub result: OutcomeResult,
    /// What became of its patches, if it had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<PatchUse>>,
}

/// The result of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a failure is rare, and only a few strings larger")]
pub enum OutcomeResult {
    /// Stored, verified, and fit to be served.
    Verified {
        /// The bitstream.
        stored: Arc<StoredBitstream>,
        /// How far it was verified.
        assurance: Assurance,
    },
    /// The stored version is the Source's current one.
    NotModified,
    /// Not attempted.
    Deferred,
    /// Not fetched, or not as declared.
    Failed(Failure),
}
