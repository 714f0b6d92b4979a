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

impl<T> Page<T> {
    /// All items, on one page.
    pub fn all(items: impl IntoIterator<Item = T>) -> Self {
        Self { items: items.into_iter().collect(), next: None }
    }

    /// The page with each item in another form.
    pub fn map<R>(self, form: impl FnMut(T) -> R) -> Page<R> {
        Page { items: self.items.into_iter().map(form).collect(), next: self.next }
    }
}
