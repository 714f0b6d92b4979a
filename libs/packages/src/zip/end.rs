//! The end of a ZIP: the records with the location of its directory.

use std::ops::Range;

use bytes::Bytes;

use super::bytes::{u16_at, u32_at, u64_at};
use crate::read_at::read_exactly;
use crate::{PackageError, ReadAt, sniff};

/// Bytes of a package's end that are read first: the longest possible end (22 bytes and a comment of up to
/// 65,535), the records of ZIP64, and with them the whole directory of most small packages.
const TAIL: u64 = 128 << 10;
const END: usize = 22;
const LOCATOR: u64 = 20;
const END64: usize = 56;

/// The content of a ZIP's end records.
#[derive(Debug)]
pub(super) struct End {
    /// How many members are declared.
    pub(super) members: u64,
    /// Whether `members` is the number itself, or its last 16 bits.
    pub(super) whole_count: bool,
    /// The range of the directory, in bytes from the start of the package.
    pub(super) directory: Range<u64>,
    /// The correction of all offsets, when other bytes precede the archive and the offsets were not adjusted.
    pub(super) shift: u64,
    /// Bytes behind the end, which belong to no part.
    pub(super) trailing: u64,
}

/// The last bytes of a package, cached so that they are not read twice.
pub(super) struct Tail<'a> {
    source: &'a dyn ReadAt,
    start: u64,
    bytes: Bytes,
}

impl<'a> Tail<'a> {
    pub(super) async fn read(source: &'a dyn ReadAt) -> Result<Self, PackageError> {
        let length = source.len().min(TAIL);
        let start = source.len() - length;
        Ok(Self { source, start, bytes: read_exactly(source, start, length as usize).await? })
    }

    /// The bytes of a range that lies inside the package.
    pub(super) async fn get(&self, offset: u64, length: usize) -> Result<Bytes, PackageError> {
        match offset.checked_sub(self.start) {
            Some(from) => Ok(self.bytes.slice(from as usize..from as usize + length)),
            None => read_exactly(self.source, offset, length).await,
        }
    }

    async fn begins_with(&self, offset: u64, magic: &[u8]) -> Result<bool, PackageError> {
        if offset.checked_add(magic.len() as u64).is_none_or(|end| end > self.source.len()) {
            return Ok(false);
        }
        Ok(self.get(offset, magic.len()).await? == magic)
    }
}

/// The fields of one end record.
struct Record {
    offset: u64,
    /// The end of its comment.
    end: u64,
    disks: [u16; 2],
    members_here: u64,
    members: u64,
    size: u64,
    directory: u64,
}

impl Record {
    fn parse(bytes: &[u8], offset: u64) -> Self {
        Self {
            offset,
            end: offset + END as u64 + u64::from(u16_at(bytes, 20)),
            disks: [u16_at(bytes, 4), u16_at(bytes, 6)],
            members_here: u16_at(bytes, 8).into(),
            members: u16_at(bytes, 10).into(),
            size: u32_at(bytes, 12).into(),
            directory: u32_at(bytes, 16).into(),
        }
    }

    /// Whether its directory could be before it: other bytes with the signature are chance, or a part of a
    /// member.
    fn plausible(&self) -> bool {
        let saturated = self.size == u32::MAX.into() || self.directory == u32::MAX.into();
        saturated || self.size + self.directory <= self.offset
    }
}

/// Finds the end of the archive.
pub(super) async fn find(tail: &Tail<'_>) -> Result<End, PackageError> {
    let record = end_record(tail).await?;
    let offset = record.offset;
    let bad = |what| PackageError::BadEnd { offset, what };
    if let Some(locator) = offset.checked_sub(LOCATOR)
        && tail.begins_with(locator, b"PK\x06\x07").await?
    {
        return zip64(tail, &record, locator).await;
    }
    if record.disks.iter().any(|&disk| disk != 0) || record.members_here != record.members {
        return Err(PackageError::MultiDisk { what: "its end record", offset });
    }
    let shift = shift(tail, &record, record.offset, record.directory, record.size).await?;
    let start = record.directory.checked_add(shift).ok_or_else(|| bad("its numbers are too large"))?;
    Ok(End {
        members: record.members,
        whole_count: false,
        directory: start..start + record.size,
        shift,
        trailing: tail.source.len() - record.end,
    })
}

/// The one end record whose comment ends with the package; or else, as some servers append a line feed, the
/// only one there is.
async fn end_record(tail: &Tail<'_>) -> Result<Record, PackageError> {
    let length = tail.source.len();
    let bytes = &tail.bytes;
    let last = bytes.len().checked_sub(END);
    let mut exact: Vec<Record> = Vec::new();
    let mut inner: Vec<Record> = Vec::new();
    for at in (0..last.map_or(0, |last| last + 1)).rev() {
        if !bytes[at..].starts_with(b"PK\x05\x06") {
            continue;
        }
        let record = Record::parse(&bytes[at..], tail.start + at as u64);
        // Two of each are enough to know that it is ambiguous.
        if record.end == length && exact.len() < 2 {
            exact.push(record);
        } else if record.end < length && record.plausible() && inner.len() < 2 {
            inner.push(record);
        }
    }
    if exact.len() > 1 && exact.iter().any(Record::plausible) {
        exact.retain(Record::plausible);
    }
    let candidates = if exact.is_empty() { &mut inner } else { &mut exact };
    let ambiguous = match candidates.as_slice() {
        [one, other, ..] => Some((one.offset, other.offset)),
        _ => None,
    };
    if let Some((second, first)) = ambiguous {
        return Err(PackageError::AmbiguousEnd { first, second });
    }
    match candidates.pop() {
        Some(record) => Ok(record),
        None => {
            let first = read_exactly(tail.source, 0, length.min(sniff::SNIFF_BYTES as u64) as usize).await?;
            if first.starts_with(b"PK\x07\x08") {
                return Err(PackageError::MultiDisk { what: "the mark of a split archive", offset: 0 });
            }
            match sniff::sniff(&first) {
                Ok(sniff::Packaging::Zip) => {
                    Err(PackageError::Truncated { length, what: "the directory of the ZIP" })
                }
                Ok(sniff::Packaging::Tar(_)) => {
                    Err(PackageError::NotAnArchive { looks_like: "a tar, which is read in another way" })
                }
                Err(error) => Err(error),
            }
        }
    }
}

/// The ZIP64 end record (APPNOTE 4.3.14), to which the locator points. If both records have a number, it must
/// be the same.
async fn zip64(tail: &Tail<'_>, record: &Record, locator: u64) -> Result<End, PackageError> {
    let locator_bytes = tail.get(locator, LOCATOR as usize).await?;
    let told = u64_at(&locator_bytes, 8);
    if u32_at(&locator_bytes, 4) != 0 || u32_at(&locator_bytes, 16) > 1 {
        return Err(PackageError::MultiDisk { what: "its ZIP64 locator", offset: locator });
    }
    // If other bytes precede the archive, the locator is wrong; the record is then right before it.
    let nearest = locator.checked_sub(END64 as u64);
    let fits = |offset: &u64| offset.checked_add(END64 as u64).is_some_and(|end| end <= locator);
    let mut found = None;
    for offset in [Some(told).filter(fits), nearest].into_iter().flatten() {
        if tail.begins_with(offset, b"PK\x06\x06").await? {
            found = Some(offset);
            break;
        }
    }
    let bad = |offset, what| PackageError::BadEnd { offset, what };
    let offset = found.ok_or_else(|| bad(locator, "the ZIP64 record that it leads to is not there"))?;
    let bytes = tail.get(offset, END64).await?;
    let bad = |what| bad(offset, what);
    let [here, members, size, directory] = [24, 32, 40, 48].map(|at| u64_at(&bytes, at));
    if u32_at(&bytes, 16) != 0 || u32_at(&bytes, 20) != 0 || here != members {
        return Err(PackageError::MultiDisk { what: "its ZIP64 record", offset });
    }
    if offset.checked_add(12).and_then(|at| at.checked_add(u64_at(&bytes, 4))).is_none_or(|end| end > locator)
    {
        return Err(bad("it runs into its locator"));
    }
    let agree = |short: u64, most: u64, long: u64| short == most || short == long;
    if !agree(record.members, u16::MAX.into(), members)
        || !agree(record.members_here, u16::MAX.into(), here)
        || !agree(record.size, u32::MAX.into(), size)
        || !agree(record.directory, u32::MAX.into(), directory)
        || record.disks.iter().any(|&disk| !agree(disk.into(), u16::MAX.into(), 0))
    {
        return Err(bad("it contradicts the shorter end record"));
    }
    let shift = shift(tail, record, offset, directory, size).await?;
    let start = directory.checked_add(shift).ok_or_else(|| bad("its numbers are too large"))?;
    let trailing = tail.source.len() - record.end;
    Ok(End { members, whole_count: true, directory: start..start + size, shift, trailing })
}

/// The correction of all offsets.
///
/// Zero, when the directory is at its declared offset. Otherwise the length of the bytes before the archive,
/// provided that the package does not begin like a ZIP itself. A ZIP cut off right behind a stored ZIP would
/// otherwise be mistaken for that inner one.
async fn shift(
    tail: &Tail<'_>,
    record: &Record,
    before: u64,
    directory: u64,
    size: u64,
) -> Result<u64, PackageError> {
    let bad = |what| PackageError::BadEnd { offset: record.offset, what };
    let end = directory.checked_add(size).filter(|&end| end <= before);
    let gap = before - end.ok_or_else(|| bad("the directory would run into it"))?;
    if size == 0 || gap == 0 {
        return Ok(0);
    }
    const SIGNATURE: &[u8] = b"PK\x01\x02";
    let as_told = tail.begins_with(directory, SIGNATURE).await?;
    let moved = tail.begins_with(directory + gap, SIGNATURE).await?;
    if as_told && moved {
        return Err(bad("the directory may lie in two places"));
    }
    if as_told {
        return Ok(0);
    }
    if record.end != tail.source.len() || tail.begins_with(0, b"PK").await? {
        return Err(bad("the directory does not lie where it is said to"));
    }
    if moved { Ok(gap) } else { Err(bad("there is no directory")) }
}
