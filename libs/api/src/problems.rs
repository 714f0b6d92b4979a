//! What could not be done.

use std::borrow::Cow;

use jiff::Timestamp;
use model::{Evidence, Ignored, ProblemReason, ProblemRecord, Subject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{kind, reason};

/// A problem.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SourceProblem {
    /// What kind of thing it is about.
    #[schema(schema_with = kind)]
    pub about: Cow<'static, str>,
    /// Its URI; of an entry the place in its document, of a message its name.
    pub uri: String,
    /// Why.
    #[schema(schema_with = reason)]
    pub reason: ProblemReason,
    /// What happened and what to do, in words.
    pub message: String,
    /// First seen.
    pub first_seen: Timestamp,
    /// Last seen.
    pub last_seen: Timestamp,
    /// Attempts made, all runs together.
    pub attempts: u32,
    /// Whether another attempt may end otherwise.
    pub retry: bool,
    /// Not tried again before: the server asked for that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub next_attempt_at: Option<Timestamp>,
    /// The operator's word that nothing is to be done about it: `note` and `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, String>, required = false)]
    pub ignored: Option<Ignored>,
    /// What was seen.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub evidence: Evidence,
}

/// All problems of one reason about one kind of thing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProblemGroup {
    /// Why.
    #[schema(schema_with = reason)]
    pub reason: ProblemReason,
    /// What kind of thing they are about.
    #[schema(schema_with = kind)]
    pub about: Cow<'static, str>,
    /// How many there are.
    pub count: u64,
    /// When the first was first seen.
    pub first_seen: Timestamp,
    /// When the last was last seen.
    pub last_seen: Timestamp,
    /// The URI of one of them.
    pub example: String,
}

impl SourceProblem {
    /// A problem as it is recorded.
    pub fn new(subject: &Subject, record: ProblemRecord) -> Self {
        Self {
            about: kind_of(subject).into(),
            uri: subject.uri().to_owned(),
            reason: record.reason,
            message: record.message,
            first_seen: record.first_seen,
            last_seen: record.last_seen,
            attempts: record.attempts,
            retry: record.retry,
            next_attempt_at: record.next_attempt_at,
            ignored: record.ignored,
            evidence: record.evidence,
        }
    }
}

/// The name of a kind of thing that problems are about.
fn kind_of(subject: &Subject) -> &'static str {
    match subject {
        Subject::Resource(_) => "resource",
        Subject::Document(_) => "document",
        Subject::Entry(_) => "entry",
        Subject::Message(_) => "message",
    }
}
