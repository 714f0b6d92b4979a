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

/// What is found on the way to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Real directories only.
    Open,
    /// A directory that is not there.
    Absent,
    /// A file where a directory has to be.
    Barred,
}

impl Directories {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, known: Mutex::default() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates a directory and those above it, unless a file bars the way. Refuses links: they would lead out of the view.
    /// Absent when others removed directories meanwhile; then it is to be tried again.
    pub(super) fn ensure(&self, directory: &str) -> Result<Way, StoreError> {
        if self.known().contains(directory) {
            return Ok(Way::Open);
        }
        for part in parts(directory) {
            if self.known().contains(part) {
                continue;
            }
            let way = self.create(part)?;
            if way != Way::Open {
                // One above that was remembered is no directory any more.
                self.forget(directory);
                return Ok(way);
            }
            let mut known = self.known();
            if known.len() >= MOST_REMEMBERED {
                known.clear();
            }
            known.insert(part.to_owned());
        }
        Ok(Way::Open)
    }

    /// What is found on the way to a directory, and there.
    pub(super) fn check(&self, directory: &str) -> Result<Way, StoreError> {
        for part in parts(directory) {
            let way = self.look(&self.root.join(part))?;
            if way != Way::Open {
                return Ok(way);
            }
        }
        Ok(Way::Open)
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

    /// Creates one directory if it is not there. Absent in the end when it, or the one above it, is removed at the same time.
    fn create(&self, part: &str) -> Result<Way, StoreError> {
        let path = self.root.join(part);
        let way = self.look(&path)?;
        if way != Way::Absent {
            return Ok(way);
        }
        match fs::create_dir(&path) {
            Ok(()) => Ok(Way::Open),
            // Another thread was quicker, or a link was: look again.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.look(&path),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Way::Barred),
            Err(error) if error.kind() == io::ErrorKind::NotFound && part.contains('/') => Ok(Way::Absent),
            Err(error) => Err(StoreError::of_file("create directory", &path, error)),
        }
    }

    fn look(&self, path: &Path) -> Result<Way, StoreError> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(Way::Open),
            Ok(metadata) if metadata.is_symlink() => {
                Err(blocked(path, "is a symbolic link where a directory of the view has to be"))
            }
            Ok(_) => Ok(Way::Barred),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Way::Absent),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Way::Barred),
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
