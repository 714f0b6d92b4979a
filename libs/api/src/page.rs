//! Pages: a list is handed out in parts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A part of a list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where to go on: the parameter `cursor` of the next request. Absent when this is the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
