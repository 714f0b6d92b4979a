//! Random access to a stored bitstream.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use model::Location;
use packages::ReadAt;

use crate::{Store, StoreError};

/// Reads ranges of a stored bitstream, such as a package. Each read is one request, and nothing is cached.
/// For sequential reads, put a read-ahead before it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RangeReader {
    store: Store,
    location: Location,
    length: u64,
}

impl Store {
    /// Reads ranges of the bitstream of `length` bytes at `location`. A deflated one is inflated from its
    /// start for each range.
    pub fn range_reader(&self, location: &Location, length: u64) -> RangeReader {
        RangeReader { store: self.clone(), location: location.clone(), length }
    }
}

impl RangeReader {
    /// The bitstream's length in bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The `length` bytes from `offset` on, never fewer. They are held in memory, so the caller bounds their
    /// number.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when less is stored.
    pub async fn read_at(&self, offset: u64, length: usize) -> Result<Bytes, StoreError> {
        let end = offset.saturating_add(length as u64);
        self.store.read_range(&self.location, offset..end).await
    }
}

#[async_trait]
impl ReadAt for RangeReader {
    fn len(&self) -> u64 {
        self.length
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        // The store's error is the source of the I/O error.
        Self::read_at(self, offset, length).await.map_err(io::Error::other)
    }
}
