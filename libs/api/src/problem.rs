//! Error responses.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was refused (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The kind of problem; a stable name.
    #[serde(rename = "type")]
    #[schema(example = "urn:thresher:problem:not-found")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The HTTP status of the response.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What happened, and what the client can do.
    pub detail: String,
    /// The requested path.
    pub instance: String,
    /// Errors of single fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// An error of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The name of the field.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}
