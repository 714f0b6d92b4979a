//! Moves files of views that were written by earlier versions, which escaped fewer dangerous names.

use std::io::{self, ErrorKind};

use fs_err as fs;
use model::ResourceUri;

use super::directories::Way;
use super::files::Files;
use super::name::Rule;
use super::path::ViewPath;
use crate::StoreError;
use crate::error::AtFile;

impl Files {
    /// Moves the file of a resource from its former path to its present one. Returns whether there was one.
    ///
    /// It is copied before it is removed, so a crash in between leaves both, and the next call removes the
    /// former one.
    pub(super) fn put_right(&self, uri: &ResourceUri) -> Result<bool, StoreError> {
        let mut was_there = false;
        for rule in [self.rule(), Rule::Strict] {
            let former = ViewPath::former(rule, uri);
            if former == ViewPath::by(rule, uri) || !self.is_file(&former)? {
                continue;
            }
            if self.find(uri)?.is_none() {
                self.copy_to_its_place(&former, uri)?;
            }
            self.remove_at(&former)?;
            was_there = true;
        }
        Ok(was_there)
    }

    fn is_file(&self, path: &ViewPath) -> Result<bool, StoreError> {
        match self.directories.check(path.directory()) {
            Ok(Way::Open) => {}
            // A link was not created by Thresher, and is left alone.
            Ok(_) | Err(StoreError::Blocked { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        let file = self.at(path);
        match fs::symlink_metadata(&file) {
            Ok(metadata) => Ok(metadata.is_file()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(StoreError::of_file("look at", &file, error)),
        }
    }

    fn copy_to_its_place(&self, former: &ViewPath, uri: &ResourceUri) -> Result<(), StoreError> {
        let from = self.at(former);
        let mut copy = self.temporary()?;
        fs::File::open(&from)
            .and_then(|mut file| io::copy(&mut file, copy.as_file_mut()))
            .at_file("copy", &from)?;
        self.publish(copy, uri)
    }
}
