//! A stored package, read by ranges.

use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use model::Location;
use packages::{ReadAhead, ReadAt};
use store::{RangeReader, Store, StoreError};

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

/// A stored package of which some ranges were read at once. All else is read by itself.
pub(crate) struct Windows<'a> {
    stored: &'a Stored,
    /// By where they begin, in their order.
    windows: Vec<(u64, Bytes)>,
}

impl<'a> Windows<'a> {
    /// Reads these ranges, which are in the order of where they begin.
    pub(crate) async fn of(stored: &'a Stored, ranges: &[Range<u64>]) -> Result<Self, StoreError> {
        let read = stored.reader.read_many(ranges).await?;
        let windows = ranges.iter().map(|range| range.start).zip(read).collect();
        Ok(Self { stored, windows })
    }
}

#[async_trait]
impl ReadAt for Windows<'_> {
    fn len(&self) -> u64 {
        self.stored.len()
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let before = self.windows.partition_point(|(start, _)| *start <= offset).checked_sub(1);
        if let Some((start, bytes)) = before.map(|n| &self.windows[n])
            && let Ok(from) = usize::try_from(offset - start)
            && from.saturating_add(length) <= bytes.len()
        {
            return Ok(bytes.slice(from..from + length));
        }
        self.stored.read_at(offset, length).await
    }
}
