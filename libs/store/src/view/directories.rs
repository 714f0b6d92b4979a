//! The view's directories: created once, cached, removed when empty.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fs_err as fs;

use super::blocked;
use crate::StoreError;

/// Size of the cache. When it is full it is cleared, and filled again with use.
const MOST_REMEMBERED: usize = 20_000;

/// The cache of directories that are known to be real ones.
#[derive(Debug)]
pub(super) struct Directories {
    root: PathBuf,
    known: Mutex<HashSet<String>>,
}

/// The result of checking the path to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Real directories only.
    Open,
    /// A directory is missing.
    Absent,
    /// A file is where a directory has to be.
    Barred,
}

impl Directories {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, known: Mutex::default() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates a directory and its parents, unless a file is in the way. Refuses links: they would lead out
    /// of the view. Returns `Absent` when other threads removed directories meanwhile; the caller then tries
    /// again.
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
                // A cached parent is no directory any more.
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

    /// Checks the path to a directory, and the directory itself.
    pub(super) fn check(&self, directory: &str) -> Result<Way, StoreError> {
        for part in parts(directory) {
            let way = self.look(&self.root.join(part))?;
            if way != Way::Open {
                return Ok(way);
            }
        }
        Ok(Way::Open)
    }

    /// Removes a directory and its parents as far as they are empty. A failure to do so is ignored.
    pub(super) fn prune(&self, directory: &str) {
        for part in parts(directory).rev() {
            // Forgotten first: a task that needs the directory from now on checks, and creates it again.
            self.known().remove(part);
            if fs::remove_dir(self.root.join(part)).is_err() {
                return;
            }
        }
    }

    /// Removes a directory and its parents from the cache.
    pub(super) fn forget(&self, directory: &str) {
        let mut known = self.known();
        for part in parts(directory) {
            known.remove(part);
        }
    }

    /// Creates one directory if it is missing. Returns `Absent` when it, or its parent, is removed at the
    /// same time.
    fn create(&self, part: &str) -> Result<Way, StoreError> {
        let path = self.root.join(part);
        let way = self.look(&path)?;
        if way != Way::Absent {
            return Ok(way);
        }
        match fs::create_dir(&path) {
            Ok(()) => Ok(Way::Open),
            // Another thread created it, or it is a link: check again.
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

/// A directory and its parents, from the top.
fn parts(directory: &str) -> impl DoubleEndedIterator<Item = &str> {
    directory.match_indices('/').map(|(at, _)| &directory[..at]).chain([directory])
}
