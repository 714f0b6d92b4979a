//! Why a publication failed.

use std::io;
use std::sync::Arc;

use catalog::CatalogError;
use resourcesync::{ReadError, WriteError};
use store::StoreError;

/// Why nothing was published, or not all of it. What was published before stays as it was; the same call continues.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The place or the options are refused.
    #[error("{0}")]
    Refused(String),
    /// Another process publishes there now.
    #[error("another process publishes to {0} now; wait for its end, or stop it")]
    Busy(String),
    /// The records may lag, and are not those that were published: shorter, or others. Those of a catalog that is
    /// opened now tell whether it was made anew.
    #[error("the catalog was read before its last changes were made; run the same command again")]
    Behind,
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The catalog cannot be opened.
    #[error(transparent)]
    Open(#[from] Arc<CatalogError>),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place cannot be written or read.
    #[error("cannot publish at {at}: {source}; repair that, then run the same command again: it continues")]
    Place {
        /// The file or object.
        at: String,
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The directory with the files cannot be read.
    #[error("cannot read the directory {0}: {1}; repair that, then run the same command again")]
    Directory(String, #[source] io::Error),
    /// So many files are gone that the directory may be incomplete.
    #[error(
        "{deleted} of {before} files are gone from {at}, more than half, so nothing was published; if that is right, \
         pass --allow-deletes"
    )]
    ManyDeleted {
        /// The directory.
        at: String,
        /// Files that are gone.
        deleted: u64,
        /// Files that were there at the last scan.
        before: u64,
    },
    /// It was stopped.
    #[error("publishing was stopped; run the same command again, and it continues")]
    Stopped,
    /// A document cannot be written.
    #[error("cannot write a document: {0}; repair that, then run the same command again: it continues")]
    Document(#[from] WriteError),
    /// The file of a subscriber is not as it was written.
    #[error(
        "{at}, line {line}, column {column}: this is no subscriber, so it is told of nothing; restore the file, or \
         remove it"
    )]
    Subscriber {
        /// The file.
        at: String,
        /// Where it cannot be read.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// The file of a request that waits is not as it was written.
    #[error(
        "{at}, line {line}, column {column}: this is no request to a hub, so it is removed; its subscriber may send it \
         again"
    )]
    Waiting {
        /// The file.
        at: String,
        /// Where it cannot be read.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// A document that was published before cannot be read.
    #[error("{at} is not as it was published: {why}; restore it, or publish to an empty place")]
    Changed {
        /// The document.
        at: String,
        /// What is wrong with it.
        why: String,
    },
}

impl PublishError {
    pub(crate) fn place(at: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Place { at: at.to_owned(), source: source.into() }
    }

    pub(crate) fn changed(at: &str, why: impl ToString) -> Self {
        Self::Changed { at: at.to_owned(), why: why.to_string() }
    }

    /// A Change List that has fewer changes than were published.
    pub(crate) fn short(at: &str, changes: u64, published: u64) -> Self {
        Self::changed(at, format!("it has {changes} changes of {published}"))
    }

    pub(crate) fn unreadable(at: &str, error: &ReadError) -> Self {
        Self::changed(at, error)
    }
}

impl From<io::Error> for PublishError {
    fn from(error: io::Error) -> Self {
        Self::place("a temporary file", error)
    }
}
