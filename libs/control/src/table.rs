//! A bucket that holds one kind of value.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use model::Message;
use tracing::warn;

use crate::bucket::{Bucket, WriteError};
use crate::view::View;
use crate::{ControlError, Revised, Revision};

/// A value that is kept in a bucket, as JSON with its kind and version around it.
pub trait Kept: Message + Send + Sync + 'static {
    /// What it is kept by.
    type Id: Send + Sync + 'static;

    /// The key: letters, digits, `-`, `_`, `=` and `.`.
    fn key(id: &Self::Id) -> String;
}

/// How often a change is tried anew when others write at the same time. Each of them has one write to make, so a handful of tries is plenty.
pub(crate) const TRIES: usize = 20;

/// What becomes of what is kept under an id.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// It stays as it is.
    Stays,
    /// It is forgotten.
    Ends,
    /// It becomes this, until it is changed again.
    Becomes(T),
    /// It becomes this, for so long.
    Lasts(T, Duration),
}

/// A bucket of `T`s.
#[derive(Debug)]
pub(crate) struct Table<T> {
    bucket: Bucket,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self { bucket: self.bucket.clone(), kind: PhantomData }
    }
}

impl<T: Kept> Table<T> {
    pub(crate) fn new(bucket: Bucket) -> Self {
        Self { bucket, kind: PhantomData }
    }

    /// What is kept under an id, and the revision of the key even where nothing is.
    pub(crate) async fn slot(&self, id: &T::Id) -> Result<(Option<Revised<T>>, Revision), ControlError> {
        let key = T::key(id);
        let slot = self.bucket.get(&key).await?;
        let revision = Revision::new(slot.revision);
        let Some(bytes) = slot.value else { return Ok((None, revision)) };
        match model::decode::<T>(&bytes) {
            Ok(value) => Ok((Some(Revised { value: Arc::new(value), revision }), revision)),
            Err(source) => {
                Err(ControlError::Unreadable { bucket: self.bucket.name().to_owned(), key, source })
            }
        }
    }

    pub(crate) async fn get(&self, id: &T::Id) -> Result<Option<Revised<T>>, ControlError> {
        Ok(self.slot(id).await?.0)
    }

    /// Writes a value over the expected revision, or over whatever is there.
    pub(crate) async fn put(
        &self,
        id: &T::Id,
        value: &T,
        expected: Option<Revision>,
        ttl: Option<Duration>,
    ) -> Result<Revision, WriteError> {
        let expected = expected.map(Revision::get);
        let revision = self.bucket.put(&T::key(id), model::encode(value), expected, ttl).await?;
        Ok(Revision::new(revision))
    }

    pub(crate) async fn remove(&self, id: &T::Id, expected: Option<Revision>) -> Result<(), WriteError> {
        self.bucket.remove(&T::key(id), expected.map(Revision::get)).await
    }

    /// Changes what is kept under an id as `decide` says, which is asked anew if others write at the same time. What is so already is not written. Gives what is kept
    /// afterwards. `what` names it to people.
    ///
    /// # Errors
    /// What `decide` says; [`ControlError::Conflict`] where others write all the time; [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub(crate) async fn change(
        &self,
        id: &T::Id,
        what: impl Fn() -> String,
        mut decide: impl FnMut(Option<&T>) -> Result<Next<T>, ControlError>,
    ) -> Result<Option<Revised<T>>, ControlError>
    where
        T: PartialEq,
    {
        for _ in 0..TRIES {
            let (found, revision) = self.slot(id).await?;
            let (next, ttl) = match decide(found.as_deref())? {
                Next::Stays => return Ok(found),
                Next::Becomes(next) if found.as_deref() == Some(&next) => return Ok(found),
                Next::Becomes(next) => (next, None),
                Next::Lasts(next, ttl) => (next, Some(ttl)),
                Next::Ends => match self.remove(id, Some(revision)).await {
                    Ok(()) => return Ok(None),
                    Err(WriteError::Conflict) => continue,
                    Err(error) => return Err(error.of(what)),
                },
            };
            match self.put(id, &next, Some(revision), ttl).await {
                Ok(revision) => return Ok(Some(Revised { value: Arc::new(next), revision })),
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.of(what)),
            }
        }
        Err(ControlError::Conflict { what: what() })
    }

    /// The values that were kept under an id and still are, oldest first. What cannot be read is left out.
    pub(crate) async fn history(&self, id: &T::Id) -> Result<Vec<T>, ControlError> {
        let key = T::key(id);
        let values = self.bucket.history(&key).await?;
        let read = |bytes: bytes::Bytes| {
            model::decode(&bytes).inspect_err(|error| warn!(key, %error, "a past value cannot be read")).ok()
        };
        Ok(values.into_iter().filter_map(read).collect())
    }

    /// A live copy of all of it.
    pub(crate) async fn view(&self) -> Result<View<T>, ControlError> {
        View::open(self.bucket.clone()).await
    }

    /// Whether the bucket can be read.
    pub(crate) async fn probe(&self) -> Result<(), ControlError> {
        self.bucket.get("probe").await.map(drop)
    }
}
