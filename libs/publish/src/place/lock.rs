//! Keeps other processes from publishing to the same place.

use fs_err::File;

use super::{Kind, Place};
use crate::PublishError;

/// Held by the one process that publishes to a place.
#[derive(Debug)]
pub(crate) struct PlaceLock(#[expect(dead_code, reason = "held until it is dropped")] Option<File>);

impl Place {
    /// Keeps other processes from publishing to the same directory. A bucket has no such lock.
    pub(crate) fn lock(&self) -> Result<PlaceLock, PublishError> {
        let Kind::Directory(directory) = &self.kind else { return Ok(PlaceLock(None)) };
        match directory.lock() {
            Ok(Some(file)) => Ok(PlaceLock(Some(file))),
            Ok(None) => Err(PublishError::Busy(self.name.to_string())),
            Err(error) => Err(self.failed("", error)),
        }
    }
}
