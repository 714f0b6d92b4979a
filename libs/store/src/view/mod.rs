//! The view: a local harvest laid out as ordinary files under readable names.
//!
//! # Paths
//!
//! `http://example.org/x/y.pdf` lies at `example.org/x/y.pdf`, and `http://example.org:8080/1` at `example.org+8080/1`. The
//! mapping of URIs to paths is the same on every machine, needs no look at other URIs, and can be undone. Two URIs never share a path, no
//! path is a directory on the way to another, and no two differ only in the case of letters.
//!
//! | of the URI | in the path |
//! |---|---|
//! | host, and port unless it is the scheme's default | `<host>`, `<host>+<port>` |
//! | `https` | `+https` after that |
//! | a segment of the path | itself |
//! | query, fragment | part of the last name; their `?` and `#` are escaped |
//! | bytes outside printable ASCII, and `< > : " / \ \| ? * ^ #`, a dot at the end | `^` and two hexadecimal digits |
//! | an empty segment; a trailing slash | `^-` |
//! | no path at all | `^~` |
//! | upper-case letters (in `%XX` lower-case ones) | as written, with `^u` before the extension: alone when all letters are meant, else with a bit for each letter, first letter lowest, four to a digit |
//! | names Windows keeps for devices (`con`, `com1`, …) | the first letter as `^` and two digits |
//! | a file whose name looks like a directory's, or the other way round | `^` at its end |
//! | a name of more than 255 bytes | pieces of 240 in directories below each other, `^_` at each cut |
//! | a URI that does not begin with `http://` or `https://`, written so | the whole of it, escaped, in `+uri/` |
//! | what would be longer than 1,000 bytes | its SHA-256 in `+long/`: the only case that cannot be undone |
//!
//! A name looks like a file's when it ends with an extension (a dot and up to eight letters or digits, one of them a letter),
//! is a number, is empty, or holds a query or fragment. Other names look like a directory's. So `/a` lies at `a^` beside the
//! directory `a` of `/a/b`, and `/v1.pdf/x` in the directory `v1.pdf^`.

mod directories;
mod name;
mod path;

#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fs_err as fs;
use futures::StreamExt;
use model::ResourceUri;
use tempfile::NamedTempFile;

use crate::StoreError;
use crate::open::DATA_DIRECTORY;
use crate::read::ByteStream;
use crate::spool::blocking;
use crate::temporary::{self, Readers};

pub use path::{ViewPath, path_of};

use directories::Directories;

/// The place of files that are being written, inside the data directory and so on the view's file system.
pub(crate) const TEMPORARY: &str = "tmp";

/// How often a file is moved to its place while others remove the directory under it.
const ATTEMPTS: usize = 100;

/// The files of a local harvest. Cheap to clone.
///
/// Files change only by renaming whole ones into place. The view can be made anew from the store at any time, so nothing in it is
/// flushed to the disk, and nothing of it is ever read back as truth.
#[derive(Debug, Clone)]
pub struct View(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directories: Directories,
    temporary: PathBuf,
}

impl View {
    /// The view in `directory`.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        let directory = directory.as_ref().to_owned();
        let temporary = directory.join(DATA_DIRECTORY).join(TEMPORARY);
        Self(Arc::new(Inner { directories: Directories::new(directory), temporary }))
    }

    /// Where the file of `uri` lies, in the file system.
    pub fn file(&self, uri: &ResourceUri) -> PathBuf {
        self.0.directories.root().join(path_of(uri).as_path())
    }

    /// Writes the file of a resource from bytes in memory, over the one that is there.
    ///
    /// # Errors
    /// [`StoreError::Blocked`] when something else stands in the way, [`StoreError::Full`] and others as the system says.
    pub async fn place(&self, uri: ResourceUri, bytes: Bytes) -> Result<(), StoreError> {
        let view = self.clone();
        blocking("write into the view", move || view.0.place(&uri, &bytes)).await
    }

    /// Writes many small files with one change of threads; each has its own result, in their order.
    pub async fn place_batch(&self, files: Vec<(ResourceUri, Bytes)>) -> Vec<Result<(), StoreError>> {
        let (view, count) = (self.clone(), files.len());
        let work = move || files.iter().map(|(uri, bytes)| view.0.place(uri, bytes)).collect();
        match tokio::task::spawn_blocking(work).await {
            Ok(results) => results,
            Err(_) => (0..count).map(|_| Err(lost_thread())).collect(),
        }
    }

    /// Writes the file of a resource from a stream, over the one that is there. When the stream fails, nothing changes.
    ///
    /// # Errors
    /// The stream's error, or as [`View::place`].
    pub async fn place_stream(&self, uri: ResourceUri, mut pieces: ByteStream) -> Result<(), StoreError> {
        let inner = Arc::clone(&self.0);
        let mut file = blocking("write into the view", move || inner.temporary()).await?;
        while let Some(piece) = pieces.next().await.transpose()? {
            file = blocking("write into the view", move || write(file, &piece)).await?;
        }
        let inner = Arc::clone(&self.0);
        blocking("write into the view", move || inner.publish(file, &path_of(&uri))).await
    }

    /// Removes the file of a resource, and the directories that become empty. Tells whether there was one.
    ///
    /// # Errors
    /// As [`View::place`].
    pub async fn remove(&self, uri: ResourceUri) -> Result<bool, StoreError> {
        let view = self.clone();
        blocking("remove from the view", move || view.0.remove(&path_of(&uri))).await
    }

    /// Whether the file of a resource is there.
    ///
    /// # Errors
    /// As the system says.
    pub async fn contains(&self, uri: &ResourceUri) -> Result<bool, StoreError> {
        let file = self.file(uri);
        let work = move || match fs::symlink_metadata(&file) {
            Ok(metadata) => Ok(metadata.is_file()),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(StoreError::of_file("look at", &file, error)),
        };
        blocking("look into the view", work).await
    }
}

impl Inner {
    fn place(&self, uri: &ResourceUri, bytes: &[u8]) -> Result<(), StoreError> {
        let file = write(self.temporary()?, bytes)?;
        self.publish(file, &path_of(uri))
    }

    fn temporary(&self) -> Result<NamedTempFile, StoreError> {
        temporary::create_in(&self.temporary, Readers::Anybody)
    }

    /// Renames a whole file to its place. A symbolic link there is replaced, not followed.
    fn publish(&self, mut file: NamedTempFile, path: &ViewPath) -> Result<(), StoreError> {
        let to = self.directories.root().join(path.as_path());
        for _ in 0..ATTEMPTS {
            self.directories.ensure(path.directory())?;
            let error = match file.persist(&to) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match error.error.kind() {
                // Somebody removed the directory, which was empty: create it again.
                io::ErrorKind::NotFound => self.directories.forget(path.directory()),
                io::ErrorKind::IsADirectory
                | io::ErrorKind::DirectoryNotEmpty
                | io::ErrorKind::AlreadyExists => {
                    return Err(blocked(&to, "is a directory where a resource's file has to be"));
                }
                _ => return Err(StoreError::of_file("write", &to, error.error)),
            }
            file = error.file;
        }
        Err(blocked(&to, "cannot be written, because its directory disappears again and again"))
    }

    fn remove(&self, path: &ViewPath) -> Result<bool, StoreError> {
        let file = self.directories.root().join(path.as_path());
        if !self.directories.check(path.directory())? {
            return Ok(false);
        }
        match fs::remove_file(&file) {
            Ok(()) => self.directories.prune(path.directory()),
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(StoreError::of_file("remove", &file, error)),
        }
        Ok(true)
    }
}

fn write(mut file: NamedTempFile, bytes: &[u8]) -> Result<NamedTempFile, StoreError> {
    match file.as_file_mut().write_all(bytes) {
        Ok(()) => Ok(file),
        Err(error) => Err(StoreError::of_file("write", file.path(), error)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn blocked(path: &Path, why: &'static str) -> StoreError {
    StoreError::Blocked { path: path.display().to_string(), why }
}

fn lost_thread() -> StoreError {
    StoreError::Unavailable { at: "the view's thread".into(), message: "it ended early".into() }
}
