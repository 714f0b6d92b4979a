//! A stored bitstream that is read here and there.

use std::ops::Range;

use bytes::Bytes;
use model::{Location, Method, Span};
use object_store::ObjectStore as _;

use crate::{Key, Store, StoreError};

/// A stored bitstream, such as a package, of which ranges are read. Each read is one request, and nothing is kept between two of them:
/// who reads on and on puts a read-ahead before it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RangeReader {
    store: Store,
    location: Location,
    length: u64,
}

impl Store {
    /// Reads ranges of the bitstream of `length` bytes at `location`. One that is stored deflated is inflated from its
    /// beginning for each of them.
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

    /// The `length` bytes from `offset` on, exactly as many. They are held in memory, so the caller bounds their number.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when less is stored.
    pub async fn read_at(&self, offset: u64, length: usize) -> Result<Bytes, StoreError> {
        let end = offset.saturating_add(length as u64);
        self.store.read_range(&self.location, offset..end).await
    }
    /// Several ranges, in their order: those that lie near each other with one request, others side by side. What lies between near ones
    /// is held with them, so the caller bounds that too.
    ///
    /// # Errors
    /// As [`RangeReader::read_at`].
    pub async fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        let (base, is_plain) = match self.location.span() {
            None => (0, true),
            Some(Span { offset, method, .. }) => (offset, method == Method::Stored),
        };
        let are_inside = ranges.iter().all(|range| range.start < range.end && range.end <= self.length);
        if is_plain && are_inside {
            let key = Key::of(&self.location);
            let moved: Vec<_> = ranges.iter().map(|range| base + range.start..base + range.end).collect();
            if let Ok(read) = self.store.objects().get_ranges(&key.path(), &moved).await
                && read.len() == ranges.len()
            {
                return Ok(read);
            }
        }
        // One by one, each says for itself what is wrong.
        let mut read = Vec::with_capacity(ranges.len());
        for range in ranges {
            read.push(self.store.read_range(&self.location, range.clone()).await?);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use fixity::Computed;

    use super::*;

    #[tokio::test]
    async fn many_ranges_come_in_their_order_and_one_behind_the_end_is_told() {
        let store = Store::in_memory();
        let bytes = Bytes::from_static(b"0123456789");
        let location = store.put_small_bitstream(Computed::of(&bytes).sha256(), bytes).await.unwrap();
        let reader = store.range_reader(&location, 10);
        assert_eq!(reader.read_many(&[7..10, 0..2, 1..3]).await.unwrap(), ["789", "01", "12"]);
        assert_eq!(reader.read_many(&[4..4, 9..10]).await.unwrap(), ["", "9"]);
        assert!(reader.read_many(&[]).await.unwrap().is_empty());
        assert!(matches!(reader.read_many(&[0..1, 8..11]).await, Err(StoreError::Damaged { .. })));
    }
}
