//! A stored package, read by ranges.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use model::Location;
use packages::{ReadAhead, ReadAt};
use store::{RangeReader, Store};

/// Bytes of a block, where many small reads are answered from a few large ones. To a store a request costs about as much as several MB do.
pub(crate) const BLOCK: usize = 4 << 20;
/// How long ranges are read.
pub(crate) const AHEAD: ReadAhead = ReadAhead { chunk: 4 << 20, reads: 2 };

/// A stored package.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    reader: RangeReader,
    length: u64,
}

impl Stored {
    /// The package of `length` bytes that lies at `location`.
    pub(crate) fn new(store: &Store, location: &Location, length: u64) -> Self {
        Self { reader: store.range_reader(location, length), length }
    }
}

#[async_trait]
impl ReadAt for Stored {
    fn len(&self) -> u64 {
        self.length
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        // What the store says is found again by `Trouble::from`.
        self.reader.read_at(offset, length).await.map_err(io::Error::other)
    }
}
