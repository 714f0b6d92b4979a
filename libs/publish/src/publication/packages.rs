//! What the packages of a publication have.

use std::collections::HashSet;
use std::sync::Arc;

use super::Publication;
use crate::paths::is_package;
use crate::{PublishError, packed};

impl Publication {
    /// Whether the package at a path has bytes of a resource at any of these URLs. None if there is no such package.
    ///
    /// # Errors
    /// When the place fails, or the manifest of the package is not as it was published.
    pub async fn package_has(
        &self,
        path: &str,
        urls: Arc<HashSet<String>>,
    ) -> Result<Option<bool>, PublishError> {
        match path.strip_suffix(".zip").filter(|_| is_package(path)) {
            Some(stem) => packed::has_any(&self.place, &format!("{stem}.xml"), urls).await,
            None => Ok(None),
        }
    }
}
