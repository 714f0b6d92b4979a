//! Outcomes: what the pipeline says of each resource at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::wire::Message;
use crate::{
    Assurance, Damage, GivenUp, JobId, Lane, ProblemReason, ResourceUri, RunId, Seq, SourceId,
    StoredBitstream, size,
};

/// What came of one job's resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// The name of the job.
    pub id: JobId,
    /// The Source they belong to.
    pub source: SourceId,
    /// The run that asked.
    pub run: RunId,
    /// The origin they come from.
    pub lane: Lane,
    /// One for each item of the job.
    pub items: Vec<Outcome>,
    /// Requests made for them.
    pub requests: u64,
    /// Time the fetch took, in milliseconds.
    pub elapsed_ms: u64,
}

/// What came of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The resource.
    pub uri: ResourceUri,
    /// The plan it belongs to.
    pub seq: Seq,
    /// The end of it.
    pub result: OutcomeResult,
}

/// The end of one resource's way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a failure is rare, and only a few strings larger")]
pub enum OutcomeResult {
    /// Stored, judged, and fit to be served.
    Verified {
        /// The bitstream.
        stored: Arc<StoredBitstream>,
        /// How much was proved.
        assurance: Assurance,
    },
    /// What is held is what the Source has.
    NotModified,
    /// Not tried.
    Deferred,
    /// Not fetched, or not what was declared.
    Failed(Failure),
}

/// A failure, and the one question it answers: try again, or not?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class of the failure.
    pub reason: ProblemReason,
    /// What happened, in words a person understands.
    pub message: String,
    /// Whether another attempt makes sense.
    pub disposition: Disposition,
    /// What was seen.
    #[serde(default)]
    pub evidence: Evidence,
}

/// Whether another attempt makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disposition {
    /// Try again; not before this time has passed, where the server asked for it.
    Retry {
        /// The wait the server asked for.
        after: Option<SignedDuration>,
    },
    /// Another attempt would end the same way.
    Refuse,
}

/// What was seen when something failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The URL that answered, after redirects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The URLs that sent the request on to it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<String>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Headers of the answer that matter, by their names in small letters: Content-Type, Content-Length, ETag, Last-Modified and Retry-After.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The `User-Agent` that was sent, where a bot defence answered: its operator needs it to let the harvester in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// What the Source declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What the bytes gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed: Option<String>,
    /// What was received instead: a later version than the one listed. Kept, and not served until a list declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Box<StoredBitstream>>,
    /// What was found where the bytes are stored, when they were read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Box<Damage>>,
    /// The message that nobody could work on, where the problem is one of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Box<GivenUp>>,
}

impl Message for Outcomes {
    const KIND: &'static str = "outcomes";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(size::outcomes(self))
    }
}
