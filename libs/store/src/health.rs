//! The health of the store, for callers whose operations are retried silently.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::error::{io_cause, is_passing, says};
use crate::{Operation, Operations, StoreError};

/// The last failure of the store, until an operation of the same kind succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFailure {
    /// What kind of failure it is.
    pub kind: TroubleKind,
    /// Whether writing failed; otherwise reading.
    pub writing: bool,
    /// What failed, where, and what the system said.
    pub message: String,
}

/// The kinds of failure that concern the store as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TroubleKind {
    /// No space or quota left: writes fail until an operator makes room.
    Full,
    /// Not permitted, or not authenticated: requests fail until an operator acts.
    Denied,
    /// Not reachable, overloaded or out of order: it may recover.
    Unavailable,
    /// Anything else.
    Other,
}

/// Records failures and successes.
#[derive(Debug, Clone)]
pub(crate) struct StoreHealth(Arc<Board>);

#[derive(Debug)]
struct Board {
    // Successes are many and failures few: a flag spares successes the lock.
    troubled: AtomicBool,
    state: watch::Sender<Option<StoreFailure>>,
    operations: Operations,
}

impl TroubleKind {
    /// The kind of a failure; `None` when it concerns only the requested object.
    pub(crate) fn of(error: &object_store::Error) -> Option<Self> {
        use object_store::Error as E;
        match error {
            E::NotFound { .. } if says(error, &["NoSuchBucket"]) => Some(Self::Other),
            E::NotFound { .. }
            | E::AlreadyExists { .. }
            | E::Precondition { .. }
            | E::NotModified { .. }
            | E::InvalidPath { .. }
            | E::NotSupported { .. }
            | E::NotImplemented { .. } => None,
            // Some servers report a quota as 403, so the text is checked before the status.
            _ if says(error, FULL) => Some(Self::Full),
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => Some(Self::Denied),
            _ => Some(Self::of_cause(error)),
        }
    }

    fn of_cause(error: &(dyn StdError + 'static)) -> Self {
        if let Some(kind) = io_cause(error).and_then(Self::of_io) {
            return kind;
        }
        // The client's error types are private, so only their texts can be checked.
        let passes = says(error, &["status code: 408", "status code: 429"]);
        let is_refused = says(error, &["status code: 4", "redirect without LOCATION"]);
        let is_remote = says(error, &["Error performing ", "HTTP error"]);
        if passes || (is_remote && !is_refused) { Self::Unavailable } else { Self::Other }
    }

    /// The kind of an I/O error, if it concerns the whole store.
    pub(crate) fn of_io(error: &io::Error) -> Option<Self> {
        use io::ErrorKind as K;
        match error.kind() {
            K::StorageFull | K::QuotaExceeded => Some(Self::Full),
            K::PermissionDenied | K::ReadOnlyFilesystem => Some(Self::Denied),
            _ if is_passing(error) => Some(Self::Unavailable),
            K::ConnectionRefused
            | K::ConnectionReset
            | K::ConnectionAborted
            | K::NotConnected
            | K::HostUnreachable
            | K::NetworkUnreachable
            | K::BrokenPipe
            | K::UnexpectedEof => Some(Self::Unavailable),
            _ => None,
        }
    }
}

/// How S3 servers report that no space is left.
const FULL: &[&str] = &[
    "status code: 507",
    "InsufficientStorage",
    "QuotaExceeded",
    "XMinioStorageFull",
    "No space left on device",
    "no space left on device",
    "Disk quota exceeded",
];

impl StoreHealth {
    /// A board without a failure.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Board {
            troubled: AtomicBool::new(false),
            state: watch::Sender::new(None),
            operations: Operations::default(),
        }))
    }

    /// Counters of the operations so far.
    pub(crate) fn operations(&self) -> &Operations {
        &self.0.operations
    }

    /// Records the start of an operation whose result comes in pieces.
    pub(crate) fn begun(&self, operation: Operation) {
        self.0.operations.count(operation, &Ok(()));
    }

    /// Subscribes to changes of the store's condition.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<StoreFailure>> {
        self.0.state.subscribe()
    }

    /// Records how an operation ended, and passes its result on.
    pub(crate) fn note<T>(
        &self,
        operation: Operation,
        at: impl FnOnce() -> String,
        result: object_store::Result<T>,
    ) -> object_store::Result<T> {
        if result.is_ok() {
            self.begun(operation);
        }
        self.note_piece(operation, at, result)
    }

    /// Records a piece of a result. Only a failure is counted.
    pub(crate) fn note_piece<T>(
        &self,
        operation: Operation,
        at: impl FnOnce() -> String,
        result: object_store::Result<T>,
    ) -> object_store::Result<T> {
        let writing = operation.writes();
        if result.is_err() {
            self.0.operations.count(operation, &result);
        }
        match &result {
            Ok(_) => self.succeeded(writing),
            Err(error) => {
                if let Some(kind) = TroubleKind::of(error) {
                    let at = at();
                    let message = match StoreError::of_trouble(kind, &at, error) {
                        Some(decided) => decided.to_string(),
                        None => format!("the store failed at {at}: {error}"),
                    };
                    self.failed(StoreFailure { kind, writing, message });
                }
            }
        }
        result
    }

    /// Records a failed write that did not go through the object store.
    pub(crate) fn failed_with(&self, error: &StoreError) {
        let kind = match error {
            StoreError::Full { .. } => TroubleKind::Full,
            StoreError::Denied { .. } => TroubleKind::Denied,
            _ => TroubleKind::Other,
        };
        self.failed(StoreFailure { kind, writing: true, message: error.to_string() });
    }

    /// Records a failure.
    pub(crate) fn failed(&self, trouble: StoreFailure) {
        self.0.troubled.store(true, Ordering::Release);
        self.0.state.send_if_modified(|state| {
            let is_news = state.as_ref() != Some(&trouble);
            *state = Some(trouble);
            is_news
        });
    }

    /// Records a success. Reads still succeed on a full disk, so they do not clear a failed write.
    pub(crate) fn succeeded(&self, writing: bool) {
        if !self.0.troubled.load(Ordering::Acquire) {
            return;
        }
        self.0.state.send_if_modified(|state| {
            let is_over = state.as_ref().is_some_and(|trouble| trouble.writing == writing);
            if is_over {
                *state = None;
                self.0.troubled.store(false, Ordering::Release);
            }
            is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(source: impl Into<Box<dyn StdError + Send + Sync>>) -> object_store::Error {
        object_store::Error::Generic { store: "test", source: source.into() }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("writing")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn a_full_disk_is_found_anywhere_in_the_chain() {
        let enospc = || io::Error::from_raw_os_error(28);
        assert_eq!(TroubleKind::of(&generic(enospc())), Some(TroubleKind::Full));
        assert_eq!(TroubleKind::of(&generic(Wrapped(enospc()))), Some(TroubleKind::Full));
        let twice = io::Error::other(Wrapped(enospc()));
        assert_eq!(TroubleKind::of(&generic(Wrapped(twice))), Some(TroubleKind::Full));
    }

    #[test]
    fn s3_says_full_in_several_ways() {
        for words in [
            "Server returned non-2xx status code: 507 Insufficient Storage: ",
            "status code: 403 Forbidden: <Code>QuotaExceeded</Code>",
            "<Code>XMinioStorageFull</Code>",
        ] {
            assert_eq!(TroubleKind::of(&generic(words)), Some(TroubleKind::Full), "{words}");
        }
    }

    #[test]
    fn what_the_server_refuses_for_good_is_told_from_what_passes() {
        for (words, kind) in [
            (
                "Error performing PUT http://h/b in 1s - Server returned non-2xx status code: 429 Too Many",
                TroubleKind::Unavailable,
            ),
            (
                "Error performing PUT http://h/b in 1s - Server returned non-2xx status code: 503 Busy",
                TroubleKind::Unavailable,
            ),
            (
                "Error performing PUT http://h/b in 1s - HTTP error: error sending request",
                TroubleKind::Unavailable,
            ),
            (
                "Error performing PUT http://h/b in 1s - Server returned non-2xx status code: 400 Bad",
                TroubleKind::Other,
            ),
        ] {
            assert_eq!(TroubleKind::of(&generic(words)), Some(kind), "{words}");
        }
    }

    #[test]
    fn an_object_that_is_not_there_is_no_trouble_of_the_store() {
        let error = object_store::Error::NotFound { path: "a".into(), source: "gone".into() };
        assert_eq!(TroubleKind::of(&error), None);
    }

    #[test]
    fn a_success_clears_trouble_of_its_own_kind_only() {
        let board = StoreHealth::new();
        let seen = board.subscribe();
        let failure: object_store::Result<()> = Err(generic(io::Error::from_raw_os_error(28)));
        assert!(board.note(Operation::Put, || "a".into(), failure).is_err());
        board.succeeded(false);
        let trouble = seen.borrow().clone().unwrap();
        assert_eq!((trouble.kind, trouble.writing), (TroubleKind::Full, true));
        board.succeeded(true);
        assert_eq!(*seen.borrow(), None);
    }
}
