//! A bucket with one kind of value.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::bucket::{Bucket, WriteError};
use crate::error::ControlError;
use crate::kept::Kept;
use crate::versioned::{Revision, Versioned};
use crate::watch_cache::WatchCache;

/// How often a change is retried when others write at the same time. Each of them has one write to make, so a few
/// attempts are enough.
pub(crate) const TRIES: usize = 20;

/// Result of an update: keep, delete, put, or put with a TTL.
#[derive(Debug)]
pub(crate) enum Update<T> {
    /// Keep the value.
    Stays,
    /// Delete the value.
    Ends,
    /// Put this value, without an end.
    Becomes(T),
    /// Put this value with a TTL.
    Lasts(T, Duration),
}

/// A bucket with values of one kind. Each kind has methods of its own. Cheap to clone.
#[derive(Debug)]
pub struct Table<T> {
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

    /// The value of an ID, and the revision of the key, even where there is no value.
    pub(crate) async fn slot(&self, id: &T::Id) -> Result<(Option<Versioned<T>>, Revision), ControlError> {
        let key = T::key(id);
        let slot = self.bucket.get(&key).await?;
        let revision = Revision::new(slot.revision);
        let Some(bytes) = slot.value else { return Ok((None, revision)) };
        match model::decode::<T>(&bytes) {
            Ok(value) => Ok((Some(Versioned { value: Arc::new(value), revision }), revision)),
            Err(source) => {
                Err(ControlError::Unreadable { bucket: self.bucket.name().to_owned(), key, source })
            }
        }
    }

    /// The value of an ID.
    pub(crate) async fn find(&self, id: &T::Id) -> Result<Option<Versioned<T>>, ControlError> {
        Ok(self.slot(id).await?.0)
    }

    /// The value of an ID, which must exist.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub(crate) async fn existing(&self, id: &T::Id) -> Result<Versioned<T>, ControlError> {
        self.find(id).await?.ok_or_else(|| ControlError::Absent { what: T::describe(id) })
    }

    /// Writes a value over the expected revision, or over any revision.
    pub(crate) async fn write(
        &self,
        id: &T::Id,
        value: &T,
        expected: Option<Revision>,
        ttl: Option<Duration>,
    ) -> Result<Revision, ControlError> {
        let expected = expected.map(Revision::get);
        let written = self.bucket.put(&T::key(id), model::encode(value), expected, ttl).await;
        written.map(Revision::new).map_err(|error| write_error::<T>(id, error))
    }

    /// Deletes a value at the expected revision, or at any revision.
    pub(crate) async fn delete_at(&self, id: &T::Id, expected: Option<Revision>) -> Result<(), ControlError> {
        let deleted = self.bucket.remove(&T::key(id), expected.map(Revision::get)).await;
        deleted.map_err(|error| write_error::<T>(id, error))
    }

    /// Writes the value of an ID again as it is, or the mark of its end, so that a write over the expected revision
    /// fails. Does nothing if the revision is another one already.
    pub(crate) async fn touch(&self, id: &T::Id, expected: Revision) -> Result<(), ControlError> {
        let key = T::key(id);
        let slot = self.bucket.get(&key).await?;
        if slot.revision != expected.get() {
            return Ok(());
        }
        let expected = Some(expected.get());
        let touched = match slot.value {
            Some(value) => self.bucket.put(&key, value.to_vec(), expected, None).await.map(drop),
            None => self.bucket.remove(&key, expected).await,
        };
        match touched {
            Err(WriteError::Conflict) => Ok(()),
            touched => touched.map_err(|error| write_error::<T>(id, error)),
        }
    }

    /// Updates the value of an ID with `decide`, which is called again if others write at the same time. An unchanged
    /// value is not written. Returns the stored value.
    ///
    /// # Errors
    /// The error of `decide`; [`ControlError::Conflict`] where others write all the time;
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub(crate) async fn change(
        &self,
        id: &T::Id,
        mut decide: impl FnMut(Option<&T>) -> Result<Update<T>, ControlError>,
    ) -> Result<Option<Versioned<T>>, ControlError>
    where
        T: PartialEq,
    {
        for _ in 0..TRIES {
            let (found, revision) = self.slot(id).await?;
            let (next, ttl) = match decide(found.as_deref())? {
                Update::Stays => return Ok(found),
                Update::Becomes(next) if found.as_deref() == Some(&next) => return Ok(found),
                Update::Becomes(next) => (next, None),
                Update::Lasts(next, ttl) => (next, Some(ttl)),
                Update::Ends => match self.delete_at(id, Some(revision)).await {
                    Err(ControlError::Conflict { .. }) => continue,
                    deleted => return deleted.map(|()| None),
                },
            };
            match self.write(id, &next, Some(revision), ttl).await {
                Err(ControlError::Conflict { .. }) => {}
                Err(error) => return Err(error),
                Ok(revision) => return Ok(Some(Versioned { value: Arc::new(next), revision })),
            }
        }
        Err(ControlError::Conflict { what: T::describe(id) })
    }

    /// The stored revisions of a value, oldest first, without unreadable ones.
    pub(crate) async fn history(&self, id: &T::Id) -> Result<Vec<T>, ControlError> {
        let key = T::key(id);
        let values = self.bucket.history(&key).await?;
        let read = |bytes: bytes::Bytes| {
            model::decode(&bytes).inspect_err(|error| warn!(key, %error, "a past value cannot be read")).ok()
        };
        Ok(values.into_iter().filter_map(read).collect())
    }

    /// A view of all values.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<WatchCache<T>, ControlError> {
        WatchCache::open(self.bucket.clone()).await
    }

    /// Checks that the bucket can be read.
    pub(crate) async fn probe(&self) -> Result<(), ControlError> {
        self.bucket.get("probe").await.map(drop)
    }
}

fn write_error<T: Kept>(id: &T::Id, error: WriteError) -> ControlError {
    let what = T::describe(id);
    match error {
        WriteError::Conflict => ControlError::Conflict { what },
        WriteError::Unavailable(source) => ControlError::unavailable(format!("write {what}"))(source),
    }
}
