//! Pages of a list.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One page of a list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The parameter `cursor` of the next request. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
