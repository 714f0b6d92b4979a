//! Errors of the store, by what the caller should do.

use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::failure_kind::{FailureKind, is_passing, root_cause, says};

/// A boxed cause.
pub type Cause = Box<dyn StdError + Send + Sync + 'static>;

/// An error of the store. Each variant is a decision for the caller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No such object.
    #[error("{key} is not in {root}; if it was there before, restore it or harvest the resource again")]
    NotFound {
        /// The object's key.
        key: String,
        /// The store.
        root: String,
    },
    /// An object of that key exists, and it must not be overwritten.
    #[error("{key} already exists in {root} and is never overwritten; use a new name")]
    AlreadyExists {
        /// The object's key.
        key: String,
        /// The store.
        root: String,
    },
    /// No space or quota is left.
    #[error(
        "no space is left to write {at}: {message}; free space or raise the quota, then run the same command again"
    )]
    Full {
        /// What was written.
        at: String,
        /// What the system said.
        message: String,
    },
    /// Not permitted, or not authenticated.
    #[error("access to {at} is denied: {message}; check the permissions and credentials")]
    Denied {
        /// What was to be read or written.
        at: String,
        /// What the system said.
        message: String,
    },
    /// The store did not answer properly; the same call may succeed later.
    #[error(
        "{at} cannot be reached: {message}; check that the store is running and reachable, then try again"
    )]
    Unavailable {
        /// What was to be read or written.
        at: String,
        /// What the system said.
        message: String,
    },
    /// Another worker uses it, or has resumed it.
    #[error("{key} is being written by another worker; it is tried again by itself")]
    Busy {
        /// The object's key.
        key: String,
    },
    /// The stored bytes are not those that were stored.
    #[error(
        "{key} is damaged: expected {expected}, found {computed}; restore it from a copy or harvest the resource again"
    )]
    Damaged {
        /// The object's key, and the range of a member.
        key: String,
        /// What it should be: a length or a digest.
        expected: String,
        /// What it is.
        computed: String,
    },
    /// The store lacks something Thresher cannot do without.
    #[error("{root} does not support {what}; use a store that does")]
    Unsupported {
        /// The store.
        root: String,
        /// What it cannot do.
        what: String,
    },
    /// The store's address or credentials are missing or wrong.
    #[error("{0}")]
    Config(String),
    /// A foreign file in the view is where a file or directory has to be.
    #[error("{path} {why}; move it away")]
    Blocked {
        /// The path.
        path: String,
        /// What is in the way.
        why: &'static str,
    },
    /// A local file could not be read or written.
    #[error("cannot {action} {path}: {source}; check the path and its disk, then run the same command again")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The path.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The error of a shared write, reported to all who share it.
    #[error(transparent)]
    Shared(Arc<StoreError>),
    /// Any other error of the store's client.
    #[error(
        "the store failed at {at}: {source}; settle what it complains of, then run the same command again"
    )]
    Other {
        /// What was to be read or written.
        at: String,
        /// The cause.
        source: Cause,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without an operator's action.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Busy { .. } => true,
            Self::Io { source, .. } => is_passing(source),
            Self::Shared(error) => error.is_retryable(),
            _ => false,
        }
    }

    /// The error of an object of this store.
    pub(crate) fn of_object(root: &str, key: &dyn Display, error: object_store::Error) -> Self {
        use object_store::Error as E;
        let at = || format!("{root}/{key}");
        match &error {
            // A GET reports a missing bucket as "not found", a listing as any other failure.
            _ if says(&error, &["NoSuchBucket"]) => {
                Self::Config(format!("the bucket of {root} does not exist: create it, or correct its name"))
            }
            E::NotFound { .. } => Self::NotFound { key: key.to_string(), root: root.to_owned() },
            E::AlreadyExists { .. } => Self::AlreadyExists { key: key.to_string(), root: root.to_owned() },
            E::NotImplemented { operation, .. } => {
                Self::Unsupported { root: root.to_owned(), what: operation.clone() }
            }
            E::NotSupported { source } => Self::Unsupported {
                root: root.to_owned(),
                what: format!("an operation that is needed ({source})"),
            },
            _ => match FailureKind::of(&error).and_then(|kind| Self::of_kind(kind, &at(), &error)) {
                Some(decided) => decided,
                None => Self::Other { at: at(), source: Box::new(error) },
            },
        }
    }

    /// The error of a failure that concerns the whole store, where its kind decides.
    pub(crate) fn of_kind(kind: FailureKind, at: &str, error: &object_store::Error) -> Option<Self> {
        let at = at.to_owned();
        let message = root_cause(error);
        match kind {
            FailureKind::Full => Some(Self::Full { at, message }),
            FailureKind::Denied => Some(Self::Denied { at, message }),
            FailureKind::Unavailable => Some(Self::Unavailable { at, message }),
            FailureKind::Other => None,
        }
    }

    /// The error of a local file.
    pub(crate) fn of_file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let at = path.display().to_string();
        match FailureKind::of_io(&source) {
            Some(FailureKind::Full) => Self::Full { at, message: source.to_string() },
            Some(FailureKind::Denied) => Self::Denied { at, message: source.to_string() },
            _ => Self::Io { action, path: at, source },
        }
    }

    /// A task that ended early: only when the runtime shuts down, or by a panic.
    pub(crate) fn of_task(action: &'static str, error: tokio::task::JoinError) -> Self {
        Self::Unavailable { at: format!("a thread to {action}"), message: error.to_string() }
    }
}

/// Adds to the error of a local file what was attempted, and where.
pub(crate) trait AtFile<T> {
    fn at_file(self, action: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> AtFile<T> for io::Result<T> {
    fn at_file(self, action: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::of_file(action, path, error))
    }
}

/// Adds to the error of an object its store and key.
pub(crate) trait AtObject<T> {
    fn at_object(self, root: &str, key: &dyn Display) -> Result<T, StoreError>;
}

impl<T> AtObject<T> for object_store::Result<T> {
    fn at_object(self, root: &str, key: &dyn Display) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::of_object(root, key, error))
    }
}
