//! The index of a package: the entries of its manifest in slices, each with what the directory says of its member, as an object beside the package.
//!
//! It has one line of JSON for each entry, and at its end a table with a row of 16 bytes for each slice, the last slice first: so the
//! row of a slice is found by its number from the end.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fixity::Hasher;
use model::{Failure, ManifestEntry, MemberResult, Method, PackageId, SourceId};
use packages::zip::{self, Claim};
use serde::{Deserialize, Serialize};
use store::{Spool, Store, StoreError};

use crate::trouble::Trouble;

/// Entries of a slice, at most.
pub(crate) const SLICE_ENTRIES: usize = 256;
/// Bytes that the members of a slice inflate to, at most; one member alone may have more.
const SLICE_BYTES: u64 = 64 << 20;
/// Bytes that the outcome of a slice takes on the bus, at most, by a careful estimate.
const SLICE_PAYLOAD: u64 = bus::MAX_PAYLOAD as u64 / 2;
/// Bytes of an outcome beside what stands in the entry: place, digests, and words when it failed.
const OUTCOME_BYTES: u64 = 1_536;

/// The format. Rows begin with it, so that no other index is taken for one.
const VERSION: u16 = 2;
const ROW: u64 = 16;
/// Bytes at the end of an index that are read at once: the table, and all of it unless there are more slices than that.
const TAIL: u64 = 4096 * ROW;

/// Where a member lies in a ZIP, by the directory: compared with the member's own header when the member is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) header_offset: u64,
    /// Where what follows the member begins.
    pub(crate) end: u64,
    pub(crate) stored_length: u64,
    pub(crate) method: Method,
    /// Bytes of its content.
    pub(crate) length: u64,
    pub(crate) crc32: u32,
    /// The member's name, which its header has to give.
    pub(crate) name: Name,
}

/// The name of a member, which mostly is text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

/// What was found of an entry when the package was opened.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Found {
    /// Its member lies there.
    Member(Place),
    /// There is nothing to be read for it, and why.
    Nothing(Box<MemberResult>),
}

/// A line of the index.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) entry: ManifestEntry,
    pub(crate) found: Found,
}

impl Found {
    /// Something that keeps its member from being taken.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Nothing(Box::new(MemberResult::Failed(failure)))
    }

    /// Where its member lies, if there is one to be read.
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            Self::Member(place) => Some(place),
            Self::Nothing(_) => None,
        }
    }
}

impl Place {
    /// Of the member with this name.
    pub(crate) fn new(claim: Claim, name: &[u8]) -> Self {
        let Claim { header_offset, end, stored_length, method, length, crc32 } = claim;
        let method = match method {
            zip::Method::Stored => Method::Stored,
            zip::Method::Deflated => Method::Deflated,
        };
        Self { header_offset, end, stored_length, method, length, crc32, name: Name::new(name) }
    }

    /// What finds it.
    pub(crate) fn claim(&self) -> Claim {
        let &Self { header_offset, end, stored_length, method, length, crc32, .. } = self;
        let method = match method {
            Method::Stored => zip::Method::Stored,
            Method::Deflated => zip::Method::Deflated,
        };
        Claim { header_offset, end, stored_length, method, length, crc32 }
    }

    /// Where its header and its data lie.
    pub(crate) fn reach(&self) -> Range<u64> {
        self.claim().reach(self.name.bytes().len())
    }
}

impl Name {
    fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(bytes.to_vec()),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// How many bytes the outcome of an entry takes on the bus, by a careful estimate: as spooled it has `line` bytes, and its URI is
/// said again when it fails.
pub(crate) fn outcome_bytes(line: u64) -> u64 {
    2 * line + OUTCOME_BYTES
}

/// An index that is being written.
pub(crate) struct Writer {
    spool: Spool,
    at: u64,
    /// The slice that is being filled.
    slice: Slice,
    /// Where each slice begins, its bytes, its lines.
    rows: Vec<(u64, u32, u16)>,
}

#[derive(Default)]
struct Slice {
    lines: Vec<u8>,
    entries: u16,
    inflated: u64,
    payload: u64,
}

impl Writer {
    /// An empty one.
    pub(crate) async fn new(store: &Store) -> Result<Self, Trouble> {
        let spool = store.spool(Hasher::new([])).await?;
        Ok(Self { spool, at: 0, slice: Slice::default(), rows: Vec::new() })
    }

    /// Adds a line.
    pub(crate) async fn add(&mut self, line: &Line) -> Result<(), Trouble> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| Trouble::Ours(error.to_string()))?;
        bytes.push(b'\n');
        let inflated = match &line.found {
            Found::Member(place) => place.length,
            Found::Nothing(_) => 0,
        };
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
        self.slice.payload += payload;
        Ok(())
    }

    async fn end_slice(&mut self) -> Result<(), Trouble> {
        let Slice { lines, entries, .. } = std::mem::take(&mut self.slice);
        if entries > 0 {
            let length = lines.len() as u32;
            self.rows.push((self.at, length, entries));
            self.at += u64::from(length);
            self.spool.append(lines.into()).await?;
        }
        Ok(())
    }

    /// Stores it, if there is a slice in it, and tells its name and how many there are.
    pub(crate) async fn finish(
        mut self,
        store: &Store,
        source: &SourceId,
    ) -> Result<Option<(PackageId, u32)>, Trouble> {
        self.end_slice().await?;
        if self.rows.is_empty() {
            return Ok(None);
        }
        let mut table = Vec::with_capacity(self.rows.len() * ROW as usize);
        for (start, length, entries) in self.rows.iter().rev() {
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

/// The end of the index that was used last, which the next slice is likely to be of as well: an index never changes, and a request costs
/// more than a slice's part of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered(Arc<Mutex<Option<End>>>);

/// The end of an index: its table, or the last rows of a very long one, and perhaps some lines before it.
#[derive(Debug, Clone)]
struct End {
    index: PackageId,
    /// Of the whole index.
    length: u64,
    bytes: Bytes,
}

impl End {
    /// A part of the index, if it is remembered.
    fn part(&self, range: Range<u64>) -> Option<Bytes> {
        let first = self.length - self.bytes.len() as u64;
        let (start, end) = (range.start.checked_sub(first)?, range.end.checked_sub(first)?);
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
/// [`StoreError::NotFound`] and [`StoreError::Damaged`] where there is no such index, or it cannot be read.
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
        let (key, root) = (format!("the index {index}"), store.root().to_owned());
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
    let (version, entries) = (u16_of(&bytes[0..2]), usize::from(u16_of(&bytes[2..4])));
    let (bytes_4, bytes_8) =
        (bytes[4..8].try_into().unwrap_or_default(), bytes[8..16].try_into().unwrap_or_default());
    let (lines_length, start) = (u64::from(u32::from_le_bytes(bytes_4)), u64::from_le_bytes(bytes_8));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, length: u64, loc: String) -> Line {
        let entry =
            ManifestEntry { loc, lastmod: None, metadata: Default::default(), line: number, column: 1 };
        let name = if number.is_multiple_of(2) { "a".as_bytes() } else { b"\xff" };
        let method = zip::Method::Deflated;
        let claim = Claim { header_offset: number, end: number, stored_length: 1, method, length, crc32: 7 };
        let place = Place::new(claim, name);
        assert_eq!((place.claim(), place.name.bytes()), (claim, name));
        Line { entry, found: Found::Member(place) }
    }

    async fn written(lines: &[Line]) -> (Store, SourceId, Option<(PackageId, u32)>) {
        let (store, source) = (Store::in_memory(), "s".parse().unwrap());
        let mut writer = Writer::new(&store).await.unwrap();
        for line in lines {
            writer.add(line).await.unwrap();
        }
        let index = writer.finish(&store, &source).await.unwrap();
        (store, source, index)
    }

    async fn slices_of(lines: &[Line]) -> Vec<usize> {
        let (store, source, index) = written(lines).await;
        let (index, slices) = index.unwrap();
        let mut all = Vec::new();
        let mut lengths = Vec::new();
        let remembered = Remembered::default();
        for number in 0..slices {
            let slice = read(&store, &source, index, number, &remembered).await.unwrap();
            lengths.push(slice.len());
            all.extend(slice);
        }
        assert_eq!(all, lines);
        let behind = read(&store, &source, index, slices, &remembered).await;
        assert!(matches!(behind, Err(StoreError::Damaged { .. })), "{behind:?}");
        lengths
    }

    #[tokio::test]
    async fn slices_are_cut_by_entries_and_read_one_by_one() {
        let lines: Vec<_> = (0..600).map(|n| line(n, 1, format!("http://e.org/{n}"))).collect();
        assert_eq!(slices_of(&lines).await, [256, 256, 88]);
    }

    #[tokio::test]
    async fn slices_are_cut_by_what_their_members_inflate_to() {
        let lengths = [SLICE_BYTES / 2, SLICE_BYTES / 2, 1, SLICE_BYTES * 9, 0];
        let lines: Vec<_> =
            (0..).zip(lengths).map(|(n, length)| line(n, length, format!("http://e.org/{n}"))).collect();
        assert_eq!(slices_of(&lines).await, [2, 1, 1, 1]);
    }

    #[tokio::test]
    async fn slices_are_cut_by_the_bytes_of_their_outcome() {
        let lines: Vec<_> = (0..60).map(|n| line(n, 1, "x".repeat(30_000))).collect();
        let slices = slices_of(&lines).await;
        assert_eq!(slices.iter().sum::<usize>(), 60);
        assert!(slices.iter().all(|&entries| entries * 2 * 30_000 < bus::MAX_PAYLOAD), "{slices:?}");
    }

    #[tokio::test]
    async fn a_table_that_is_longer_than_what_is_read_of_it_at_once_is_read_row_by_row() {
        let slices = (TAIL / ROW) as usize + 3;
        let lines: Vec<_> = (0..slices as u64).map(|n| line(n, SLICE_BYTES, format!("x:{n}"))).collect();
        assert_eq!(slices_of(&lines).await, vec![1; slices]);
    }

    #[tokio::test]
    async fn of_two_indexes_in_turns_each_gives_its_own_lines() {
        let (store, source, one) = written(&[line(1, 1, "x:1".to_owned())]).await;
        let mut writer = Writer::new(&store).await.unwrap();
        writer.add(&line(2, 1, "x:2".to_owned())).await.unwrap();
        let (one, two) = (one.unwrap().0, writer.finish(&store, &source).await.unwrap().unwrap().0);
        let remembered = Remembered::default();
        for (index, expected) in [(one, 1), (one, 1), (two, 2), (one, 1)] {
            let lines = read(&store, &source, index, 0, &remembered).await.unwrap();
            assert_eq!(lines, [line(expected, 1, format!("x:{expected}"))]);
        }
    }

    #[tokio::test]
    async fn an_index_that_is_read_at_once_is_not_read_again() {
        let lines: Vec<_> = (0..260).map(|n| line(n, 1, format!("x:{n}"))).collect();
        let (store, source, index) = written(&lines).await;
        let (index, slices) = index.unwrap();
        assert_eq!(slices, 2);
        let remembered = Remembered::default();
        let first = read(&store, &source, index, 0, &remembered).await.unwrap();
        // Whatever is read from now on would not be found.
        store.remove_beside_packages(&source, index).await.unwrap();
        let mut all = first;
        for number in 1..slices {
            all.extend(read(&store, &source, index, number, &remembered).await.unwrap());
        }
        assert_eq!(all, lines);
    }

    #[tokio::test]
    async fn an_index_of_nothing_is_not_stored() {
        assert_eq!(written(&[]).await.2, None);
    }

    #[tokio::test]
    async fn what_is_no_index_is_damaged_and_what_is_not_there_is_not_found() {
        let (store, source, _) = written(&[]).await;
        let remembered = Remembered::default();
        let read_one = |index| read(&store, &source, index, 0, &remembered);
        assert!(matches!(read_one(PackageId::fresh()).await, Err(StoreError::NotFound { .. })));
        let mut spool = store.spool(Hasher::new([])).await.unwrap();
        spool.append(vec![0x41; 100].into()).await.unwrap();
        let other = PackageId::fresh();
        store.put_beside_packages(&source, other, spool.finish().await.unwrap()).await.unwrap();
        assert!(matches!(read_one(other).await, Err(StoreError::Damaged { .. })));
    }
}
