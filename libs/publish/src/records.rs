//! What is published: the records of a catalog, or the files of a directory.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use fixity::Sha256;
use futures::stream::BoxStream;
use jiff::Timestamp;
use model::{Bitstream, ResourceUri};
use resourcesync::{Change, Link, relation};
use store::StoreError;

use crate::names::{Named, PublishedPath};
use crate::scanned::Scanned;
use crate::{Base, PublishError};

/// A resource to publish: what its entry says, and where its bytes are.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The Last-Modified with which its bytes are served, in whole seconds.
    pub lastmod: Timestamp,
    /// The `hash` attribute: the SHA-256 of its bytes, and perhaps other digests.
    pub hash: String,
    /// The length of its bytes.
    pub length: u64,
    /// Its media type.
    pub media_type: Option<String>,
    /// The Content-Encoding of its bytes.
    pub encoding: Option<String>,
    /// The links of its entry.
    pub links: Vec<PassedLink>,
    /// Its bytes.
    pub body: Body,
}

impl Stored {
    /// The links of its entry that stay when it is deleted: that to its first Source.
    pub(crate) fn vias(&self) -> Vec<Link> {
        let vias = self.links.iter().filter(|passed| passed.link.rel == relation::VIA);
        vias.map(|passed| passed.link.clone()).collect()
    }
}

/// A link of an entry, as it is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedLink {
    /// The link, with its original target.
    pub link: Link,
    /// The target, if it is published beside the resource: readers are led to our URL of it.
    pub published: Option<ResourceUri>,
}

/// Where the bytes of a resource are.
#[derive(Debug, Clone)]
pub enum Body {
    /// In the store of a harvest.
    Bitstream(Box<Bitstream>),
    /// In a file of the directory; with this digest when it was scanned.
    File(Sha256),
}

/// A change to tell.
#[derive(Debug, Clone)]
pub struct Told {
    /// The resource.
    pub uri: ResourceUri,
    /// Created, updated or deleted.
    pub kind: Change,
    /// When it was settled, or seen.
    pub at: Timestamp,
    /// What is there now; none if it was deleted.
    pub stored: Option<Stored>,
    /// The links of its entry, if it was deleted.
    pub links: Vec<Link>,
}

/// The bytes of a resource, as they are read.
pub type Pieces = BoxStream<'static, Result<Bytes, BodyError>>;
/// Resources, in the order of the records.
pub type Resources<'a> = BoxStream<'a, Result<(ResourceUri, Stored), PublishError>>;
/// Changes, in the order in which they are told.
pub type Changes<'a> = BoxStream<'a, Result<Told, PublishError>>;

/// Why the bytes of one resource cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The store has no such bytes, or other ones.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is not as it was scanned.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Why the bytes of a file cannot be published now.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It has other bytes by now.
    #[error("the file changed since it was scanned; the next run takes it")]
    Changed,
    /// It cannot be opened or read.
    #[error("the file cannot be read: {0}; the next run tries again")]
    Unreadable(#[from] io::Error),
}

impl BodyError {
    /// Whether the store has lost the bytes, so that no later run finds them before they are repaired.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// The inner error of a resource that is left out. A failure of the store itself ends the run.
    pub(crate) fn of_resource<T>(self) -> Result<Result<T, Self>, PublishError> {
        match self {
            Self::Store(error) if !is_of_bytes(&error) => Err(error.into()),
            error => Ok(Err(error)),
        }
    }
}

fn is_of_bytes(error: &StoreError) -> bool {
    matches!(error, StoreError::NotFound { .. } | StoreError::Damaged { .. })
}

/// The records of one publication. Changes have ascending numbers.
#[async_trait]
pub trait Records: Send + Sync {
    /// Looks what there is now; a directory is scanned. `published` is the number of the first change that is not
    /// published yet.
    async fn refresh(&self, published: u64, now: Timestamp) -> Result<Option<Scanned>, PublishError> {
        let _ = (published, now);
        Ok(None)
    }

    /// The number of the next change.
    async fn next_change(&self) -> Result<u64, PublishError>;

    /// Whether all changes from this number on are known. If not, everything is published anew.
    async fn continues(&self, from: u64) -> Result<bool, PublishError>;

    /// Whether these are all changes that there are by now. A reader of a catalog may lag behind its writer, and so
    /// behind what another process has published.
    fn are_current(&self) -> bool {
        true
    }

    /// A mark of the change before this number. Records that were made anew have others, though they may have as many
    /// changes. None where there is none.
    async fn mark(&self, before: u64) -> Result<Option<String>, PublishError> {
        let _ = before;
        Ok(None)
    }

    /// The time of the last change.
    async fn last_change(&self) -> Result<Option<Timestamp>, PublishError>;

    /// What is there, in the order of the records, behind `after`.
    async fn resources<'a>(&'a self, after: Option<&ResourceUri>) -> Result<Resources<'a>, PublishError>;

    /// The changes with numbers from `from` to before `end`. One that a later one replaced may be left out.
    async fn changes<'a>(&'a self, from: u64, end: u64) -> Result<Changes<'a>, PublishError>;

    /// Whether a resource is there now.
    async fn is_present(&self, uri: &ResourceUri) -> Result<bool, PublishError>;

    /// What is there of some resources, in their order.
    async fn find(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Stored>>, PublishError>;

    /// Whether there are some resources, or were before. One that never was may count, too.
    async fn know(&self, uris: &[ResourceUri]) -> Result<Vec<bool>, PublishError> {
        Ok(vec![true; uris.len()])
    }

    /// Opens the bytes of a resource. They are compared with their digest while they are read.
    async fn open(&self, uri: &ResourceUri, stored: &Stored) -> Result<Pieces, BodyError>;

    /// The path below the base at which the bytes of a resource are laid down.
    fn path(&self, uri: &ResourceUri) -> PublishedPath;

    /// The resource whose bytes are laid down at a path below the base. None where that is not known, or none is.
    fn at(&self, path: &str) -> Option<Named> {
        let _ = path;
        None
    }

    /// The URL of a resource.
    fn url(&self, base: &Base, uri: &ResourceUri) -> String {
        base.url(self.path(uri).as_str())
    }

    /// The resource with this URL.
    fn named(&self, base: &Base, url: &str) -> Option<Named>;

    /// Whether the resources are copies of those of another Source.
    fn are_copies(&self) -> bool;
}
