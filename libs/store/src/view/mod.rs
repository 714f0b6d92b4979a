//! The view: a local harvest laid out as ordinary files under readable names.
//!
//! # Paths
//!
//! `https://example.org/x/Report.pdf` lies at `example.org/x/Report.pdf`, and `http://example.org:8080/1` at `example.org+8080/1`:
//! the **plain path** ([`path_of`]) is the host, then the path's segments as the URI writes them. It is the same on every machine, no
//! two URIs share one, and it can be undone ([`ViewPath::uri`]).
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
//! | a URI that does not begin with `http://` or `https://`, written so | the whole of it, escaped, in `+uri/` |
//! | what would be longer than 1,000 bytes | its SHA-256 in `+long/`: the only case that cannot be undone |
//!
//! So no Source can lay out a repository, a hidden file or a device: all names that a system or a program takes for more than a
//! name stand in one list, in `hazard.rs`. Views from before that list was whole are put right by [`View::put_right`].
//!
//! # Collisions
//!
//! A name cannot be a file and a directory at once, as `/a` beside `/a/b` asks for. Whichever comes first has its plain path; the other
//! lies at `+also/` and its **strict path**, until it is written again when the way is free. So a resource has one file, at one of two
//! places that no other resource can have; [`View::file`] tells which. Strict paths carry two marks more, with which none leads through
//! another, and no two differ only in the case of letters:
//!
//! | of the URI | in the strict path |
//! |---|---|
//! | upper-case letters (in `%XX` lower-case ones) | as written, with `^u` before the extension: alone when all letters are meant, else with a bit for each letter, first letter lowest, four to a digit |
//! | a file whose name looks like a directory's, or the other way round | `^` at its end |
//!
//! A name looks like a file's when it ends with an extension (a dot and up to eight letters or digits, one of them a letter),
//! is a number, is empty, or holds a query or fragment. Other names look like a directory's. So `https://h/a` beside `https://h/a/b`
//! lies at `+also/h/a^`.
//!
//! Where the file system does not tell the case of letters apart, plain paths carry the mark of case, too.

mod directories;
mod files;
mod former;
mod hazard;
mod name;
mod path;
mod unnamed;

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
use crate::read::ByteStream;
use crate::spool::blocking;

pub use path::{ViewPath, path_of};

use files::Files;

/// The place of files that are being written, inside the data directory and so on the view's file system.
pub(crate) const TEMPORARY: &str = "tmp";

/// Counts up when the list of dangerous names grows, so that views from before are known.
pub const NAMES: u32 = 1;

/// The files of a local harvest. Cheap to clone.
///
/// Whole files come to their places, by their first name or by another one; none is ever changed where it lies. The view can be made anew from the store at any time, so nothing in it is
/// flushed to the disk, and nothing of it is ever read back as truth.
#[derive(Debug, Clone)]
pub struct View(Arc<Files>);

impl View {
    /// The view in `directory`.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        Self(Arc::new(Files::new(directory.as_ref().to_owned())))
    }

    /// Where the file of `uri` lies, in the file system; if there is none, where it would lie with nothing in the way. Looks at the disk.
    pub fn file(&self, uri: &ResourceUri) -> PathBuf {
        self.0.find(uri).ok().flatten().unwrap_or_else(|| self.0.plain(uri))
    }

    /// Writes the file of a resource from bytes in memory, over the one that is there.
    ///
    /// # Errors
    /// [`StoreError::Blocked`] when a symbolic link, or something that is not ours below `+also`, stands in the way, [`StoreError::Full`] and others as the system says.
    pub async fn place(&self, uri: ResourceUri, bytes: Bytes) -> Result<(), StoreError> {
        let view = self.clone();
        blocking("write into the view", move || view.0.place(&uri, &bytes)).await
    }

    /// Writes many small files, one after another, with one change of threads; each has its own result, in their order. Batches may be
    /// written side by side if no two of them hold the same resource, whose last bytes would be a matter of chance.
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

    /// Makes a whole file that of a resource, over the one that is there.
    pub(crate) async fn publish(&self, file: NamedTempFile, uri: ResourceUri) -> Result<(), StoreError> {
        let files = Arc::clone(&self.0);
        blocking("write into the view", move || files.publish(file, &uri)).await
    }

    /// Removes the file of a resource, and the directories that become empty. Tells whether there was one.
    ///
    /// # Errors
    /// As [`View::place`].
    pub async fn remove(&self, uri: ResourceUri) -> Result<bool, StoreError> {
        let view = self.clone();
        blocking("remove from the view", move || view.0.remove(&uri)).await
    }

    /// Moves the files of these resources to the places they have now, from those they had while fewer names were known to be
    /// dangerous. Tells how many it moved. What lies there already stays: it is never older.
    ///
    /// # Errors
    /// As [`View::place`].
    pub async fn put_right(&self, uris: Vec<ResourceUri>) -> Result<u64, StoreError> {
        let view = self.clone();
        let moves =
            move || uris.iter().try_fold(0, |moved, uri| Ok(moved + u64::from(view.0.put_right(uri)?)));
        blocking("move within the view", moves).await
    }

    /// Whether the file of a resource is there.
    ///
    /// # Errors
    /// As the system says.
    pub async fn contains(&self, uri: &ResourceUri) -> Result<bool, StoreError> {
        let (view, uri) = (self.clone(), uri.clone());
        blocking("look into the view", move || Ok(view.0.find(&uri)?.is_some())).await
    }
}

fn blocked(path: &Path, why: &'static str) -> StoreError {
    StoreError::Blocked { path: path.display().to_string(), why }
}

fn lost_thread() -> StoreError {
    StoreError::Unavailable { at: "the view's thread".into(), message: "it ended early".into() }
}
