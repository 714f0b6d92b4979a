//! Errors of a catalog.

use std::time::Duration;

use slatedb::{CloseReason, ErrorKind};

/// An error of a catalog: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// There is no catalog at this path.
    #[error(
        "there is no catalog at {path}: nothing was harvested into this store yet, or it is another store"
    )]
    NotFound {
        /// Its path.
        path: String,
    },
    /// The catalog was written by a later version.
    #[error(
        "the catalog {path} has schema {found}, this version knows schemas up to {known}: \
         use the version of Thresher that wrote it, or a later one"
    )]
    NewerSchema {
        /// Its path.
        path: String,
        /// Its schema.
        found: u32,
        /// The newest schema of this version.
        known: u32,
    },
    /// Another process has opened the catalog for writing.
    #[error(
        "catalog {path}: another writer took over; this process stopped writing. Let it finish, or stop it and run again"
    )]
    Fenced {
        /// Its path.
        path: String,
    },
    /// A record cannot be read.
    #[error(
        "catalog {path}: record {key} cannot be read: {why}. \
         Restore the catalog from a backup, or sync into a new directory or prefix"
    )]
    Corrupt {
        /// The catalog's path.
        path: String,
        /// The record: its kind and its name.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// A record's name is longer than any valid one.
    #[error(
        "catalog {path}: the name of a record has {length} bytes, more than {limit}: {key}… \
         The URI is too long; leave out such resources with --exclude"
    )]
    KeyTooLong {
        /// The catalog's path.
        path: String,
        /// The record's kind and the beginning of its name.
        key: String,
        /// The key's length in bytes.
        length: usize,
        /// The longest key accepted, in bytes.
        limit: usize,
    },
    /// The object store failed, or the files in it are damaged.
    #[error("the catalog {path} could not be {doing}: {cause}; see to its store, then run again")]
    Store {
        /// The catalog's path.
        path: String,
        /// The operation: `opened`, `read`, `written`, `closed`.
        doing: &'static str,
        /// The error of the LSM.
        cause: slatedb::Error,
    },
    /// The store did not answer in time. Whether the batch was written is unknown until the catalog is
    /// reopened.
    #[error(
        "the catalog {path} could not be {doing} within {} s: its store does not answer; see to it, then run again",
        after.as_secs()
    )]
    TimedOut {
        /// The catalog's path.
        path: String,
        /// The operation: `opened`, `written`, `closed`.
        doing: &'static str,
        /// The timeout.
        after: Duration,
    },
    /// An earlier commit failed or was cancelled, so the catalog's state is unknown.
    #[error(
        "the catalog {path} is not written any more, because an earlier batch may or may not be stored: \
         open it again, which finds out"
    )]
    Poisoned {
        /// The catalog's path.
        path: String,
    },
    /// The catalog was closed.
    #[error("the catalog {path} is closed: open it anew")]
    Closed {
        /// Its path.
        path: String,
    },
}

impl CatalogError {
    /// Whether reopening the catalog may get past this failure without an operator's action: the store
    /// failed.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::TimedOut { .. } | Self::Poisoned { .. })
    }

    /// Whether reopening the catalog and repeating the call may succeed without a repair.
    ///
    /// A fenced catalog is not retryable: while the other process lives, both would fence each other for
    /// ever.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::Poisoned { .. } | Self::Closed { .. } => true,
            Self::Store { cause, .. } => match cause.kind() {
                ErrorKind::Unavailable | ErrorKind::Transaction => true,
                ErrorKind::Closed(reason) => reason != CloseReason::Fenced,
                _ => false,
            },
            Self::NotFound { .. }
            | Self::NewerSchema { .. }
            | Self::Fenced { .. }
            | Self::Corrupt { .. }
            | Self::KeyTooLong { .. } => false,
        }
    }

    pub(crate) fn opening(path: &str, cause: slatedb::Error) -> Self {
        Self::store(path, "opened", cause)
    }

    pub(crate) fn reading(path: &str, cause: slatedb::Error) -> Self {
        Self::store(path, "read", cause)
    }

    pub(crate) fn writing(path: &str, cause: slatedb::Error) -> Self {
        Self::store(path, "written", cause)
    }

    pub(crate) fn closing(path: &str, cause: slatedb::Error) -> Self {
        Self::store(path, "closed", cause)
    }

    fn store(path: &str, doing: &'static str, cause: slatedb::Error) -> Self {
        let path = path.to_owned();
        match cause.kind() {
            ErrorKind::Closed(CloseReason::Fenced) => Self::Fenced { path },
            ErrorKind::Closed(CloseReason::Clean) => Self::Closed { path },
            _ => Self::Store { path, doing, cause },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_store_may_be_tried_again_and_a_fenced_catalog_may_not() {
        let failing = CatalogError::writing("catalogs/a", slatedb::Error::unavailable("503".into()));
        assert!(failing.is_retryable());
        assert!(failing.to_string().contains("catalogs/a could not be written"), "{failing}");
        let fenced = slatedb::Error::closed("newer client".into(), CloseReason::Fenced);
        let fenced = CatalogError::writing("catalogs/a", fenced);
        assert!(matches!(fenced, CatalogError::Fenced { .. }));
        assert!(!fenced.is_retryable());
    }

    #[test]
    fn a_record_that_cannot_be_used_is_named_with_what_to_do() {
        let path = || "catalogs/a".to_owned();
        let key = || "resource https://example.org/b".to_owned();
        let corrupt = CatalogError::Corrupt { path: path(), key: key(), why: "end of input".to_owned() };
        assert_eq!(
            corrupt.to_string(),
            "catalog catalogs/a: record resource https://example.org/b cannot be read: end of input. \
             Restore the catalog from a backup, or sync into a new directory or prefix"
        );
        let long = CatalogError::KeyTooLong { path: path(), key: key(), length: 70_001, limit: 65_535 };
        assert_eq!(
            long.to_string(),
            "catalog catalogs/a: the name of a record has 70001 bytes, more than 65535: \
             resource https://example.org/b… The URI is too long; leave out such resources with --exclude"
        );
    }

    #[test]
    fn damaged_files_are_not_tried_again() {
        let damaged = CatalogError::reading("catalogs/a", slatedb::Error::data("checksum mismatch".into()));
        assert!(!damaged.is_retryable());
    }
}
