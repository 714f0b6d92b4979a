//! What the packages of a publication have.

use std::collections::HashSet;
use std::sync::Arc;

use super::Publication;
use crate::paths::is_package;
use crate::state::{Dump, State};
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

    /// Whether the package at a path was removed for what is withdrawn, and the Resource Dump still names it: another
    /// one is not made yet.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn package_was_removed(&self, path: &str) -> Result<bool, PublishError> {
        let Some(State { dump: Some(Dump { packages, .. }), .. }) = State::load(&self.place).await? else {
            return Ok(false);
        };
        Ok(packages.iter().any(|package| package.path == path && package.entries.is_none()))
    }
}
