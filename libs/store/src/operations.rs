//! Counts the store's operations and their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure_kind::FailureKind;

/// An operation of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Get an object's bytes or metadata.
    Get,
    /// Write an object, or a part of one.
    Put,
    /// List a prefix.
    List,
    /// Delete an object.
    Delete,
    /// Copy or rename an object.
    Copy,
}

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Success.
    Done,
    /// There is no such object, or a condition does not hold. This counts as an answer, not as a failure.
    Answered,
    /// No space or quota is left.
    Full,
    /// Not permitted, or not authenticated.
    Denied,
    /// Not reachable, overloaded or out of order.
    Unavailable,
    /// Failed otherwise.
    Other,
}

/// Counts the operations of a store. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Operations(Arc<[[AtomicU64; Ending::ALL.len()]; Operation::ALL.len()]>);

impl Operation {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Put, Self::List, Self::Delete, Self::Copy];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::List => "list",
            Self::Delete => "delete",
            Self::Copy => "copy",
        }
    }

    /// Whether it changes what is stored.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List)
    }
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Done, Self::Answered, Self::Full, Self::Denied, Self::Unavailable, Self::Other];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Answered => "answered",
            Self::Full => "full",
            Self::Denied => "denied",
            Self::Unavailable => "unavailable",
            Self::Other => "other",
        }
    }

    fn of<T>(result: &object_store::Result<T>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(error) => match FailureKind::of(error) {
                None => Self::Answered,
                Some(FailureKind::Full) => Self::Full,
                Some(FailureKind::Denied) => Self::Denied,
                Some(FailureKind::Unavailable) => Self::Unavailable,
                Some(FailureKind::Other) => Self::Other,
            },
        }
    }
}

impl Operations {
    /// The count of each operation and result, since the store was opened.
    pub fn counted(&self) -> impl Iterator<Item = (Operation, Ending, u64)> + '_ {
        let of = |operation: Operation| Ending::ALL.map(|ending| (operation, ending));
        Operation::ALL.into_iter().flat_map(of).map(move |(operation, ending)| {
            (operation, ending, self.0[operation as usize][ending as usize].load(Ordering::Relaxed))
        })
    }

    pub(crate) fn count<T>(&self, operation: Operation, result: &object_store::Result<T>) {
        self.0[operation as usize][Ending::of(result) as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use object_store::{ObjectStore, ObjectStoreExt};

    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn each_operation_is_counted_by_how_it_ended() {
        use futures::TryStreamExt;
        let store = Store::in_memory();
        let objects = store.object_store();
        objects.put(&"a/1".into(), "x".into()).await.unwrap();
        objects.put(&"a/2".into(), "x".into()).await.unwrap();
        objects.get(&"a/1".into()).await.unwrap();
        objects.get(&"a/3".into()).await.unwrap_err();
        assert_eq!(objects.list(None).try_collect::<Vec<_>>().await.unwrap().len(), 2);
        objects.delete(&"a/1".into()).await.unwrap();
        let counted: Vec<_> = store.operations().counted().filter(|(.., count)| *count > 0).collect();
        let wanted = [
            (Operation::Get, Ending::Done, 1),
            (Operation::Get, Ending::Answered, 1),
            (Operation::Put, Ending::Done, 2),
            (Operation::List, Ending::Done, 1),
            (Operation::Delete, Ending::Done, 1),
        ];
        assert_eq!(counted, wanted);
    }
}
