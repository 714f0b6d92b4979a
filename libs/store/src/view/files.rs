//! The view's files: each at its plain path, or at its strict one if the plain one is taken.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use fs_err as fs;
use model::ResourceUri;
use tempfile::NamedTempFile;

use super::directories::{Directories, Way};
use super::name::Rule;
use super::path::{ALSO, ViewPath};
use super::{TEMPORARY, blocked};
use crate::StoreError;
use crate::target::DATA_DIRECTORY;
use crate::temporary::{self, Readers};

/// How often a file is moved while other threads remove its directory.
const ATTEMPTS: usize = 100;

#[derive(Debug)]
pub(super) struct Files {
    pub(super) directories: Directories,
    temporary: PathBuf,
    /// The case rule of plain paths here, once it is known.
    rule: OnceLock<Rule>,
    /// Whether there may be files at strict paths.
    has_strict: OnceLock<AtomicBool>,
}

/// The result of moving a complete file.
enum Moved {
    There,
    /// Not moved: there is a directory in its place, or a file where a directory has to be.
    Barred(NamedTempFile),
}

impl Files {
    pub(super) fn new(root: PathBuf) -> Self {
        let temporary = root.join(DATA_DIRECTORY).join(TEMPORARY);
        let directories = Directories::new(root);
        Self { directories, temporary, rule: OnceLock::new(), has_strict: OnceLock::new() }
    }

    /// Writes the file of a resource. Several threads may call it at once, but not for one resource: which of
    /// them wins would be random.
    pub(super) fn place(&self, uri: &ResourceUri, bytes: &[u8]) -> Result<(), StoreError> {
        self.publish(write(self.temporary()?, bytes)?, uri)
    }

    pub(super) fn temporary(&self) -> Result<NamedTempFile, StoreError> {
        temporary::create_in(&self.temporary, Readers::Everyone)
    }

    /// Renames a complete file to its place.
    pub(super) fn publish(&self, file: NamedTempFile, uri: &ResourceUri) -> Result<(), StoreError> {
        let file = match self.rename(file, &self.plain_path(uri))? {
            Moved::There => return self.remove_stale(uri),
            Moved::Barred(file) => file,
        };
        let strict = strict_path(uri);
        // Recorded before it becomes true, so that no reader overlooks the file.
        self.has_strict().store(true, Ordering::Release);
        match self.rename(file, &strict)? {
            Moved::There => Ok(()),
            Moved::Barred(_) => {
                Err(blocked(&self.at(&strict), "cannot be written: something else lies there, or above it"))
            }
        }
    }

    /// The file of a resource, if there is one.
    pub(super) fn find(&self, uri: &ResourceUri) -> Result<Option<PathBuf>, StoreError> {
        for path in [self.plain_path(uri), strict_path(uri)] {
            let file = self.at(&path);
            match fs::symlink_metadata(&file) {
                Ok(metadata) if metadata.is_file() => return Ok(Some(file)),
                Ok(_) => {}
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(StoreError::of_file("look at", &file, error)),
            }
        }
        Ok(None)
    }

    /// The plain path of a resource in the file system.
    pub(super) fn plain(&self, uri: &ResourceUri) -> PathBuf {
        self.at(&self.plain_path(uri))
    }

    pub(super) fn remove(&self, uri: &ResourceUri) -> Result<bool, StoreError> {
        // The outdated file first, if there are two after a crash: if this is interrupted, the right one is
        // left.
        let strict = self.has_strict().load(Ordering::Acquire) && self.remove_at(&strict_path(uri))?;
        Ok(self.remove_at(&self.plain_path(uri))? || strict)
    }

    /// Moves a file. A symbolic link in its place is replaced, not followed.
    fn rename(&self, mut file: NamedTempFile, path: &ViewPath) -> Result<Moved, StoreError> {
        let to = self.at(path);
        for _ in 0..ATTEMPTS {
            match self.directories.ensure(path.directory())? {
                Way::Open => {}
                Way::Absent => continue,
                Way::Barred => return Ok(Moved::Barred(file)),
            }
            let error = match file.persist(&to) {
                Ok(_) => return Ok(Moved::There),
                Err(error) => error,
            };
            file = error.file;
            match error.error.kind() {
                // A cached directory is gone, or has become a file: check again.
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    self.directories.forget(path.directory());
                }
                io::ErrorKind::IsADirectory
                | io::ErrorKind::DirectoryNotEmpty
                | io::ErrorKind::AlreadyExists => return Ok(Moved::Barred(file)),
                // Some systems report this for a directory, too.
                io::ErrorKind::PermissionDenied if is_directory(&to) => return Ok(Moved::Barred(file)),
                _ => return Err(StoreError::of_file("write", &to, error.error)),
            }
        }
        Err(blocked(&to, "cannot be written, because its directory disappears again and again"))
    }

    /// Removes the file at the strict path of a resource that was just written to its plain path.
    fn remove_stale(&self, uri: &ResourceUri) -> Result<(), StoreError> {
        if !self.has_strict().load(Ordering::Acquire) {
            return Ok(());
        }
        let path = strict_path(uri);
        // One check for all resources that never had a strict path.
        if fs::symlink_metadata(self.at(&path)).is_ok() {
            self.remove_at(&path)?;
        }
        Ok(())
    }

    pub(super) fn remove_at(&self, path: &ViewPath) -> Result<bool, StoreError> {
        if self.directories.check(path.directory())? != Way::Open {
            return Ok(false);
        }
        let file = self.at(path);
        match fs::remove_file(&file) {
            Ok(()) => self.directories.prune(path.directory()),
            // The error itself decides: other threads may have removed the directory since.
            Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::IsADirectory => {
                return Ok(false);
            }
            // Some systems report this for a directory.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_directory(&file) => {
                return Ok(false);
            }
            Err(error) => return Err(StoreError::of_file("remove", &file, error)),
        }
        Ok(true)
    }

    pub(super) fn at(&self, path: &ViewPath) -> PathBuf {
        self.directories.root().join(path.as_path())
    }

    fn plain_path(&self, uri: &ResourceUri) -> ViewPath {
        ViewPath::by(self.rule(), uri)
    }

    /// Finds out whether the file system is case-sensitive. If it is not, the directory of temporary files
    /// also opens under a second name, which no other writer uses inside the data directory. Before that
    /// directory exists there are no files, either.
    pub(super) fn rule(&self) -> Rule {
        if let Some(rule) = self.rule.get() {
            return *rule;
        }
        if !is_directory(&self.temporary) {
            return Rule::Plain;
        }
        let other = self.temporary.with_file_name(TEMPORARY.to_ascii_uppercase());
        let is_told_apart = fs::symlink_metadata(other).is_err();
        *self.rule.get_or_init(|| if is_told_apart { Rule::Plain } else { Rule::Cased })
    }

    /// Read from the disk once, and cached: only this process adds files.
    fn has_strict(&self) -> &AtomicBool {
        let also = || fs::symlink_metadata(self.directories.root().join(ALSO)).is_ok();
        self.has_strict.get_or_init(|| AtomicBool::new(also()))
    }
}

pub(super) fn write(mut file: NamedTempFile, bytes: &[u8]) -> Result<NamedTempFile, StoreError> {
    match file.as_file_mut().write_all(bytes) {
        Ok(()) => Ok(file),
        Err(error) => Err(StoreError::of_file("write", file.path(), error)),
    }
}

fn strict_path(uri: &ResourceUri) -> ViewPath {
    ViewPath::by(Rule::Strict, uri)
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
