//! The view's directories: created once, remembered, removed when empty.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fs_err as fs;

use super::blocked;
use crate::StoreError;

/// How many are remembered; then all are forgotten, and found again as they are used.
const MOST_REMEMBERED: usize = 20_000;

/// The directories of a view that are known to be real ones.
#[derive(Debug)]
pub(super) struct Directories {
    root: PathBuf,
    known: Mutex<HashSet<String>>,
}

impl Directories {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, known: Mutex::default() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates a directory and those above it, and refuses what is not one: a link would lead out of the view.
    pub(super) fn ensure(&self, directory: &str) -> Result<(), StoreError> {
        if self.known().contains(directory) {
            return Ok(());
        }
        for part in parts(directory) {
            if self.known().contains(part) {
                continue;
            }
            let path = self.root.join(part);
            if !self.is_directory(&path)? {
                match fs::create_dir(&path) {
                    Ok(()) => {}
                    // Another thread was quicker, or a link was: look again.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        self.is_directory(&path)?;
                    }
                    // The one above was removed: the caller moves its file in vain, and begins anew.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && part.contains('/') => {
                        self.forget(directory);
                        return Ok(());
                    }
                    Err(error) => return Err(StoreError::of_file("create directory", &path, error)),
                }
            }
            let mut known = self.known();
            if known.len() >= MOST_REMEMBERED {
                known.clear();
            }
            known.insert(part.to_owned());
        }
        Ok(())
    }

    /// Whether a directory is there, by way of real directories only.
    pub(super) fn check(&self, directory: &str) -> Result<bool, StoreError> {
        for part in parts(directory) {
            if !self.is_directory(&self.root.join(part))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes a directory and those above it as far as they are empty. Whatever hinders that is no failure.
    pub(super) fn prune(&self, directory: &str) {
        for part in parts(directory).rev() {
            // Forgotten first: whoever needs it from now on looks, and creates it again.
            self.known().remove(part);
            if fs::remove_dir(self.root.join(part)).is_err() {
                return;
            }
        }
    }

    /// Forgets a directory and those above it.
    pub(super) fn forget(&self, directory: &str) {
        let mut known = self.known();
        for part in parts(directory) {
            known.remove(part);
        }
    }

    fn is_directory(&self, path: &Path) -> Result<bool, StoreError> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(true),
            Ok(metadata) if metadata.is_symlink() => {
                Err(blocked(path, "is a symbolic link where a directory of the view has to be"))
            }
            Ok(_) => Err(blocked(path, "is a file where a directory of the view has to be")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::of_file("look at", path, error)),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory and those above it, from the top.
fn parts(directory: &str) -> impl DoubleEndedIterator<Item = &str> {
    directory.match_indices('/').map(|(at, _)| &directory[..at]).chain([directory])
}
