//! Failures: what happened, whether to retry, and the evidence.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::problem_reason::ProblemReason;
use crate::stored_bitstream::StoredBitstream;
use crate::{Damage, DeadLetterSummary};

/// A failure, and whether to retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class of the failure.
    pub reason: ProblemReason,
    /// What happened, in words for an operator.
    pub message: String,
    /// Whether to retry.
    pub disposition: Disposition,
    /// The evidence.
    #[serde(default)]
    pub evidence: Evidence,
}

/// Whether to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disposition {
    /// Retry, but not before the time that the server requested, if any.
    Retry {
        /// The wait that the server requested.
        after: Option<SignedDuration>,
    },
    /// A retry would end the same way.
    Refuse,
}

/// Evidence of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The URL that answered, after redirects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The URLs that redirected to it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<String>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Response headers that matter, by their lower-case names: Content-Type, Content-Length, ETag,
    /// Last-Modified and Retry-After.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The `User-Agent` that was sent, if a bot defence answered: its operator needs it to admit the
    /// harvester.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The declared value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The computed value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed: Option<String>,
    /// The candidate that was received instead: a later version than the listed one. Kept, and not served
    /// until a list declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Box<StoredBitstream>>,
    /// What a later read found at the location of the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Box<Damage>>,
    /// The dead letter, when the problem is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Box<DeadLetterSummary>>,
}
