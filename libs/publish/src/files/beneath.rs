//! Opens files below a directory. No symbolic link is followed, so nothing outside is reached, whoever may write there.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use fixity::Sha256;
use jiff::Timestamp;
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::media_types::media_type;
use super::spelling::is_plain;
use super::stamp::Stamp;

/// A file that is open, to be served.
#[derive(Debug)]
pub struct OpenFile {
    /// It, at its beginning.
    pub file: File,
    /// Its length.
    pub length: u64,
    /// Its Last-Modified.
    pub modified: Timestamp,
    /// A strong entity tag: its digest, or what else tells its versions apart.
    pub etag: String,
    /// The digest of its bytes, if they are as they were scanned.
    pub sha256: Option<Sha256>,
    /// Its media type, by its name.
    pub media_type: Option<&'static str>,
    pub(super) stamp: Stamp,
}

impl OpenFile {
    /// Whether it is as it was when it was opened, by its length and time. One that was replaced is.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        Ok(Stamp::of(&self.file.metadata()?) == self.stamp)
    }

    /// The same file, with its digest.
    pub(super) fn with_digest(self, sha256: Sha256) -> Self {
        Self { etag: format!("\"{sha256}\""), sha256: Some(sha256), ..self }
    }
}

/// Opens the directory itself. It may be given by a symbolic link.
pub(super) fn root(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(directory, flags, Mode::empty())?)
}

/// Opens a folder in a folder.
pub(super) fn folder(above: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(above, name, flags, Mode::empty())?)
}

/// Opens a file in a folder. It must be a regular one.
pub(super) fn file(folder: impl AsFd, name: &str) -> io::Result<(File, Stamp)> {
    // A pipe must not make it wait.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let stamp = Stamp::of(&found);
    Ok((file, stamp))
}

/// Opens the file at a path below a directory.
pub(super) fn open(directory: &Path, path: &str) -> io::Result<OpenFile> {
    if !is_plain(path) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut above = root(directory)?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for name in folders.split('/').filter(|name| !name.is_empty()) {
        above = folder(above, name)?;
    }
    let (file, stamp) = file(above, name)?;
    Ok(OpenFile {
        file,
        length: stamp.length,
        modified: stamp.time(),
        etag: stamp.etag(),
        sha256: None,
        media_type: media_type(path),
        stamp,
    })
}

/// What is at a name in a folder. None if nothing is.
pub(super) fn stat(folder: impl AsFd, name: &str) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether there is nothing to open, or a symbolic link, or a file in place of a folder.
pub(super) fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    is_link || matches!(error.kind(), NotFound | NotADirectory)
}

/// What tells a folder from all others: its file system and its inode.
#[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(super) fn identity(found: &Stat) -> (u64, u64) {
    (found.st_dev as u64, found.st_ino as u64)
}
