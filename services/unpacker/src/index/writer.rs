//! Writes an index: divides entries into slices as they arrive.

use std::cmp::Reverse;

use fixity::Hasher;
use model::{PackageId, SourceId};
use store::{Spool, Store};

use super::{INFLATED_BYTE, Line, ROW, SLICE_ENTRIES, VERSION, outcome_bytes};
use crate::error::UnpackError;

/// Maximum bytes to which the members of a slice inflate; a single member may have more.
pub(super) const SLICE_BYTES: u64 = 64 << 20;
/// Slices are started in the order of the manifest, which is their order in the package. This holds as long as their
/// work differs by less than this, in bytes that are only hashed. No slice of several members is as long.
pub(super) const LONG_WORK: u64 = 2 * INFLATED_BYTE * SLICE_BYTES;
/// Estimated maximum size of a slice's outcome on the bus, in bytes.
const SLICE_PAYLOAD: u64 = bus::MAX_PAYLOAD as u64 / 2;

/// An index that is being written.
pub(crate) struct Writer {
    spool: Spool,
    at: u64,
    /// The slice that is being filled.
    slice: Slice,
    rows: Vec<Row>,
}

/// Position of a slice's lines in the index.
struct Row {
    start: u64,
    length: u32,
    entries: u16,
    /// See [`Found::work`].
    work: u64,
}

#[derive(Default)]
struct Slice {
    lines: Vec<u8>,
    entries: u16,
    inflated: u64,
    work: u64,
    payload: u64,
}

impl Writer {
    /// Starts an empty index.
    pub(crate) async fn new(store: &Store) -> Result<Self, UnpackError> {
        let spool = store.spool(Hasher::new([])).await?;
        Ok(Self { spool, at: 0, slice: Slice::default(), rows: Vec::new() })
    }

    /// Adds a line.
    pub(crate) async fn add(&mut self, line: &Line) -> Result<(), UnpackError> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| UnpackError::Ours(error.to_string()))?;
        bytes.push(b'\n');
        let inflated = line.found.length();
        let payload = outcome_bytes(bytes.len() as u64);
        let Slice { entries, inflated: so_far, payload: queued, .. } = self.slice;
        let is_full = usize::from(entries) >= SLICE_ENTRIES
            || so_far.saturating_add(inflated) > SLICE_BYTES
            || queued + payload > SLICE_PAYLOAD;
        if entries > 0 && is_full {
            self.end_slice().await?;
        }
        self.slice.lines.extend_from_slice(&bytes);
        self.slice.entries += 1;
        self.slice.inflated = self.slice.inflated.saturating_add(inflated);
        self.slice.work = self.slice.work.saturating_add(line.found.work());
        self.slice.payload += payload;
        Ok(())
    }

    async fn end_slice(&mut self) -> Result<(), UnpackError> {
        let Slice { lines, entries, work, .. } = std::mem::take(&mut self.slice);
        if entries > 0 {
            let length = lines.len() as u32;
            self.rows.push(Row { start: self.at, length, entries, work });
            self.at += u64::from(length);
            self.spool.append(lines.into()).await?;
        }
        Ok(())
    }

    /// Stores it, if it has a slice, and returns its name and the number of slices.
    pub(crate) async fn finish(
        mut self,
        store: &Store,
        source: &SourceId,
    ) -> Result<Option<(PackageId, u32)>, UnpackError> {
        self.end_slice().await?;
        if self.rows.is_empty() {
            return Ok(None);
        }
        // A stable sort: all others keep their order.
        self.rows.sort_by_key(|row| Reverse(row.work / LONG_WORK));
        let mut table = Vec::with_capacity(self.rows.len() * ROW as usize);
        for Row { start, length, entries, .. } in self.rows.iter().rev() {
            table.extend_from_slice(&VERSION.to_le_bytes());
            table.extend_from_slice(&entries.to_le_bytes());
            table.extend_from_slice(&length.to_le_bytes());
            table.extend_from_slice(&start.to_le_bytes());
        }
        self.spool.append(table.into()).await?;
        let index = PackageId::fresh();
        store.put_beside_packages(source, index, self.spool.finish().await?).await?;
        Ok(Some((index, self.rows.len() as u32)))
    }
}
