//! Opens files below a directory. No symbolic link is followed, so nothing outside is reached, whoever may write there.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use fixity::Sha256;
use jiff::Timestamp;
use rustix::fs::{Mode, OFlags};

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
