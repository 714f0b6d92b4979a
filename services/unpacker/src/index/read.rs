//! Reads the lines of one slice from an index.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use model::{Method, PackageId, SourceId};
use store::{Store, StoreError};

use super::{Line, ROW, VERSION};

/// Bytes at the end of an index that are read at once: the table, and all of it unless there are more slices than
/// that.
pub(super) const TAIL: u64 = 4096 * ROW;

/// The end of the last used index, which the next slice probably needs too: an index never changes, and a request
/// costs more than reading a slice's part of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered(Arc<Mutex<Option<End>>>);

/// The end of an index: its table, or the last rows of a very long one, and perhaps some lines before it.
#[derive(Debug, Clone)]
struct End {
    index: PackageId,
    /// Length of the whole index.
    length: u64,
    bytes: Bytes,
}

impl End {
    /// A part of the index, if it is cached.
    fn part(&self, range: Range<u64>) -> Option<Bytes> {
        let first = self.length - self.bytes.len() as u64;
        let start = range.start.checked_sub(first)?;
        let end = range.end.checked_sub(first)?;
        Some(self.bytes.slice(start as usize..end as usize))
    }
}

impl Remembered {
    async fn end_of(
        &self,
        store: &Store,
        source: &SourceId,
        index: PackageId,
    ) -> Result<Option<End>, StoreError> {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(end) = before.filter(|end| end.index == index) {
            return Ok(Some(end));
        }
        let Some((length, bytes)) = store.tail_beside_packages(source, index, TAIL).await? else {
            return Ok(None);
        };
        let end = End { index, length, bytes };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end.clone());
        Ok(Some(end))
    }
}

/// The lines of a slice.
///
/// # Errors
/// [`StoreError::NotFound`] and [`StoreError::Damaged`] if there is no such index, or it cannot be read.
pub(crate) async fn read(
    store: &Store,
    source: &SourceId,
    index: PackageId,
    number: u32,
    remembered: &Remembered,
) -> Result<Vec<Line>, StoreError> {
    let damaged = |expected: &str, computed: String| StoreError::Damaged {
        key: format!("the index {index}"),
        expected: expected.to_owned(),
        computed,
    };
    let Some(end) = remembered.end_of(store, source, index).await? else {
        let key = format!("the index {index}");
        let root = store.root().to_owned();
        return Err(StoreError::NotFound { key, root });
    };
    let length = end.length;
    let location = model::Location::Package {
        source: source.clone(),
        package: index,
        offset: 0,
        stored_length: length,
        method: Method::Stored,
    };
    let rows = (u64::from(number) + 1) * ROW;
    let row = length
        .checked_sub(rows)
        .ok_or_else(|| damaged("a row for each slice", format!("{length} bytes, none for slice {number}")))?;
    let bytes = match end.part(row..row + ROW) {
        Some(bytes) => bytes,
        None => store.read_range(&location, row..row + ROW).await?,
    };
    let version = u16_of(&bytes[0..2]);
    let entries = usize::from(u16_of(&bytes[2..4]));
    let lines_length = u64::from(u32::from_le_bytes(bytes[4..8].try_into().unwrap_or_default()));
    let start = u64::from_le_bytes(bytes[8..16].try_into().unwrap_or_default());
    let until = start.checked_add(lines_length).filter(|until| *until <= row && version == VERSION);
    let until =
        until.ok_or_else(|| damaged("a row of its table", format!("other bytes for slice {number}")))?;
    let bytes = match end.part(start..until) {
        Some(bytes) => bytes,
        None => store.read_range(&location, start..until).await?,
    };
    let lines: Result<Vec<Line>, _> = serde_json::Deserializer::from_slice(&bytes).into_iter().collect();
    match lines {
        Ok(lines) if lines.len() == entries => Ok(lines),
        Ok(lines) => {
            Err(damaged(&format!("{entries} entries"), format!("{} of slice {number}", lines.len())))
        }
        Err(error) => Err(damaged("entries", format!("slice {number}: {error}"))),
    }
}

fn u16_of(bytes: &[u8]) -> u16 {
    u16::from_le_bytes(bytes.try_into().unwrap_or_default())
}
