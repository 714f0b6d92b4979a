//! The view: a local harvest as ordinary files under readable names.
//!
//! # Paths
//!
//! `https://example.org/x/Report.pdf` is stored at `example.org/x/Report.pdf`, and `http://example.org:8080/1` at
//! `example.org+8080/1`. This **plain path** ([`path_of`]) is the host, then the path's segments as the URI writes
//! them. It is the same on every machine, no two URIs share one, and it can be decoded ([`ViewPath::uri`]).
//!
//! | of the URI | in the plain path |
//! |---|---|
//! | host of `https` with no port | `<host>` |
//! | host of `http` with no port | `<host>+80` |
//! | another port than the scheme's own | `<host>+<port>` for `http`, `<host>+<port>+https` for `https` |
//! | a segment of the path | itself |
//! | query, fragment | part of the last name; their `?` and `#` are escaped, and slashes in them |
//! | bytes outside printable ASCII, and `< > : " / \ \| ? * ^ #`, a dot at the beginning or end, `~` before a digit, `+` in hosts | `^` and two hexadecimal digits |
//! | an empty segment; a trailing slash | `^-` |
//! | no path at all | `^~` |
//! | names Windows keeps for devices (`con`, `com1`, …), `desktop.ini`, `autorun.inf` | the first letter as `^` and two digits |
//! | a name of more than 255 bytes | pieces of 240 in directories below each other, `^_` at each cut |
//! | a URI that does not literally begin with `http://` or `https://` | all of it, escaped, in `+uri/` |
//! | a path that would exceed 1,000 bytes | its SHA-256 in `+long/`: the only case that cannot be decoded |
//!
//! So no Source can create a repository, a hidden file or a device: all names that a system or a program obeys are in
//! one list, in `hazard.rs`. [`View::put_right`] moves the files of views from before that list was complete.
//!
//! # Collisions
//!
//! A name cannot be a file and a directory at once, as `/a` and `/a/b` require. The first one gets its plain path.
//! The other is stored below `+also/` at its **strict path**, until it is written again when its plain path is free.
//! So a resource has one file, at one of two places that no other resource can have; [`View::file`] returns which.
//! Strict paths carry two more marks. They ensure that no strict path is a directory of another, and that no two
//! differ only in the case of letters:
//!
//! | of the URI | in the strict path |
//! |---|---|
//! | upper-case letters (in `%XX` lower-case ones) | as written, with `^u` before the extension: alone when all letters are meant, else with a bit for each letter, first letter lowest, four to a digit |
//! | a file whose name looks like a directory's, or the other way round | `^` at its end |
//!
//! A name looks like a file's when it ends with an extension (a dot and up to eight letters or digits, one of them a
//! letter), is a number, is empty, or holds a query or fragment. Other names look like a directory's. So with
//! `https://h/a/b`, `https://h/a` is stored at `+also/h/a^`.
//!
//! On a case-insensitive file system, plain paths carry the mark of case, too.

mod directories;
mod files;
mod former;
mod hazard;
mod name;
mod path;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use model::ResourceUri;
use tempfile::NamedTempFile;

use crate::StoreError;
use crate::files::blocking;
use crate::verified::ByteStream;

pub use path::{ViewPath, path_of};

use files::Files;

/// The directory for temporary files, inside the data directory and so on the view's file system.
pub(crate) const TEMPORARY: &str = "tmp";

/// Version of the list of dangerous names, so that earlier views are recognized.
pub const NAMES: u32 = 1;

/// The files of a local harvest. Cheap to clone.
///
/// A file is moved into place when it is complete, and is never changed there. The view can be generated anew
/// from the store at any time, so it is not flushed to the disk. It is never read back as truth.
#[derive(Debug, Clone)]
pub struct View(Arc<Files>);

impl View {
    /// The view in `directory`.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        Self(Arc::new(Files::new(directory.as_ref().to_owned())))
    }

    /// The path of the file of `uri` in the file system; if there is none, the path it would get with nothing
    /// in the way. Reads the disk.
    pub fn file(&self, uri: &ResourceUri) -> PathBuf {
        self.0.find(uri).ok().flatten().unwrap_or_else(|| self.0.plain(uri))
    }

    /// Writes the file of a resource from bytes in memory, over an existing one.
    ///
    /// # Errors
    /// [`StoreError::Blocked`] when a symbolic link, or a foreign file below `+also`, is in the way,
    /// [`StoreError::Full`] and others as the system reports.
    pub async fn place(&self, uri: ResourceUri, bytes: Bytes) -> Result<(), StoreError> {
        let view = self.clone();
        blocking("write into the view", move || view.0.place(&uri, &bytes)).await
    }

    /// Writes many small files, one after another, with one change of threads; each has its own result, in
    /// order. Batches may be written concurrently if no two of them contain the same resource: which of its
    /// bytes win would be random.
    pub async fn place_batch(&self, files: Vec<(ResourceUri, Bytes)>) -> Vec<Result<(), StoreError>> {
        let view = self.clone();
        let count = files.len();
        let work = move || files.iter().map(|(uri, bytes)| view.0.place(uri, bytes)).collect();
        match tokio::task::spawn_blocking(work).await {
            Ok(results) => results,
            Err(_) => (0..count).map(|_| Err(lost_thread())).collect(),
        }
    }

    /// Writes the file of a resource from a stream, over an existing one. When the stream fails, nothing
    /// changes.
    ///
    /// # Errors
    /// The stream's error, or as [`View::place`].
    pub async fn place_stream(&self, uri: ResourceUri, mut pieces: ByteStream) -> Result<(), StoreError> {
        let mut file = self.temporary().await?;
        while let Some(piece) = pieces.next().await.transpose()? {
            file = blocking("write into the view", move || files::write(file, &piece)).await?;
        }
        self.publish(file, uri).await
    }

    /// A file on the view's file system, to be published once it is whole.
    pub(crate) async fn temporary(&self) -> Result<NamedTempFile, StoreError> {
        let files = Arc::clone(&self.0);
        blocking("write into the view", move || files.temporary()).await
    }

    /// Makes a complete file that of a resource, over an existing one.
    pub(crate) async fn publish(&self, file: NamedTempFile, uri: ResourceUri) -> Result<(), StoreError> {
        let files = Arc::clone(&self.0);
        blocking("write into the view", move || files.publish(file, &uri)).await
    }

    /// Removes the file of a resource, and the directories that become empty. Returns whether there was one.
    ///
    /// # Errors
    /// As [`View::place`].
    pub async fn remove(&self, uri: ResourceUri) -> Result<bool, StoreError> {
        let view = self.clone();
        blocking("remove from the view", move || view.0.remove(&uri)).await
    }

    /// Moves the files of these resources from their former paths, from before more names were known to be
    /// dangerous. Returns the number of moved files. A file at the present path stays: it is never older.
    ///
    /// # Errors
    /// As [`View::place`].
    pub async fn put_right(&self, uris: Vec<ResourceUri>) -> Result<u64, StoreError> {
        let view = self.clone();
        let moves =
            move || uris.iter().try_fold(0, |moved, uri| Ok(moved + u64::from(view.0.put_right(uri)?)));
        blocking("move within the view", moves).await
    }

    /// Whether the file of a resource exists.
    ///
    /// # Errors
    /// As the system reports.
    pub async fn contains(&self, uri: &ResourceUri) -> Result<bool, StoreError> {
        let view = self.clone();
        let uri = uri.clone();
        blocking("look into the view", move || Ok(view.0.find(&uri)?.is_some())).await
    }
}

fn blocked(path: &Path, why: &'static str) -> StoreError {
    StoreError::Blocked { path: path.display().to_string(), why }
}

fn lost_thread() -> StoreError {
    StoreError::Unavailable { at: "the view's thread".into(), message: "it ended early".into() }
}
