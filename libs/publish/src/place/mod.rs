//! Where a publication is laid down: a directory or a bucket. A file appears whole, in the place of an earlier one.

mod bucket;
mod directory;
mod document;
mod guard;
mod lock;
mod opening;
mod read;
mod small;
mod write;

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path as Key;

use self::bucket::Bucket;
use self::directory::Directory;
use self::guard::Guard;
use self::small::SmallFiles;
use crate::PublishError;

pub use self::document::{Document, DocumentBody};
pub(crate) use self::guard::tag;
pub(crate) use self::write::{About, lasting, xml};

/// The folder of files that belong to the publisher alone. Servers need not serve it.
pub(crate) const OWN: &str = ".thresher";

/// A place for the files of one publication.
#[derive(Debug, Clone)]
pub struct Place {
    name: Arc<str>,
    objects: Arc<dyn ObjectStore>,
    kind: Kind,
    /// Of the state of the publication, in a bucket. Where there is one, Change Lists are guarded, too.
    guard: Option<Guard>,
    /// Whether several processes may write it, one at a time.
    is_shared: bool,
    /// Files for readers.
    small: SmallFiles,
}

#[derive(Debug, Clone)]
enum Kind {
    Directory(Directory),
    Bucket(Bucket),
}

/// What a system said.
type Cause = Box<dyn std::error::Error + Send + Sync>;

impl Place {
    /// Whether several processes may write it, one at a time ([`Place::shared`]).
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether a process that another one has overtaken fails ([`Place::of_one_writer`]).
    pub fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// The local directory, if it is one.
    pub fn local(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Directory(directory) => Some(directory.root()),
            Kind::Bucket(_) => None,
        }
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn failed(&self, path: &str, error: impl Into<Cause>) -> PublishError {
        PublishError::place(&format!("{}/{path}", self.name), error)
    }
}

/// The key of a path: the path itself. Paths have no control characters, and no `.` or `..` as a segment.
fn key(path: &str) -> Key {
    Key::parse(path).unwrap_or_else(|_| Key::from(path))
}
