//! Why a request was not done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not done (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What kind of problem it is; stable.
    #[serde(rename = "type")]
    #[schema(example = "urn:thresher:problem:not-found")]
    pub kind: String,
    /// The same in words.
    pub title: String,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What happened, and what to do.
    pub detail: String,
    /// Where: the path that was asked for.
    pub instance: String,
    /// What is wrong with single fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The field.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}
