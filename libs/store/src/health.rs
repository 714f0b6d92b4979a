//! The health of the store, for callers whose operations are retried silently.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::failure_kind::FailureKind;
use crate::{Operation, Operations, StoreError};

/// The last failure of the store, until an operation of the same kind succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFailure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// Whether writing failed; otherwise reading.
    pub writing: bool,
    /// What failed, where, and what the system said.
    pub message: String,
}

/// Records failures and successes.
#[derive(Debug, Clone)]
pub(crate) struct StoreHealth(Arc<Record>);

#[derive(Debug)]
struct Record {
    // Successes are many and failures few: a flag spares successes the lock.
    has_failed: AtomicBool,
    state: watch::Sender<Option<StoreFailure>>,
    operations: Operations,
}

impl StoreHealth {
    /// No failure so far.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Record {
            has_failed: AtomicBool::new(false),
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
                if let Some(kind) = FailureKind::of(error) {
                    let at = at();
                    let message = match StoreError::of_kind(kind, &at, error) {
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
            StoreError::Full { .. } => FailureKind::Full,
            StoreError::Denied { .. } => FailureKind::Denied,
            _ => FailureKind::Other,
        };
        self.failed(StoreFailure { kind, writing: true, message: error.to_string() });
    }

    /// Records a failure.
    pub(crate) fn failed(&self, failure: StoreFailure) {
        self.0.has_failed.store(true, Ordering::Release);
        self.0.state.send_if_modified(|state| {
            let is_news = state.as_ref() != Some(&failure);
            *state = Some(failure);
            is_news
        });
    }

    /// Records a success. Reads still succeed on a full disk, so they do not clear a failed write.
    pub(crate) fn succeeded(&self, writing: bool) {
        if !self.0.has_failed.load(Ordering::Acquire) {
            return;
        }
        self.0.state.send_if_modified(|state| {
            let is_over = state.as_ref().is_some_and(|failure| failure.writing == writing);
            if is_over {
                *state = None;
                self.0.has_failed.store(false, Ordering::Release);
            }
            is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_clears_trouble_of_its_own_kind_only() {
        let health = StoreHealth::new();
        let seen = health.subscribe();
        let source = std::io::Error::from_raw_os_error(28).into();
        let failure: object_store::Result<()> = Err(object_store::Error::Generic { store: "test", source });
        assert!(health.note(Operation::Put, || "a".into(), failure).is_err());
        health.succeeded(false);
        let trouble = seen.borrow().clone().unwrap();
        assert_eq!((trouble.kind, trouble.writing), (FailureKind::Full, true));
        health.succeeded(true);
        assert_eq!(*seen.borrow(), None);
    }
}
