//! One record of the central directory, in a compact form.

use super::bytes::{u16_at, u32_at, u64_at, zip64_extra};
use crate::Kind;

/// Bytes of a record before its name.
pub(super) const HEAD: usize = 46;

/// Bits of the flags (APPNOTE 4.4.4): encrypted, strongly encrypted, header values masked.
pub(super) const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
/// Bit of the flags: sizes and CRC-32 follow the data.
pub(super) const DESCRIPTOR: u16 = 1 << 3;
/// Bit of the flags: the data is a patch.
pub(super) const PATCH: u16 = 1 << 5;

/// A member in memory: 40 bytes, and its name in the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) header_offset: u64,
    pub(super) compressed_size: u64,
    pub(super) size: u64,
    pub(super) crc32: u32,
    pub(super) name_start: u32,
    pub(super) name_length: u16,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) kind: Kind,
    pub(super) duplicate: bool,
}

/// The lengths of a record's variable parts, by its head: name, extra, comment.
pub(super) fn tails(head: &[u8]) -> [usize; 3] {
    [28, 30, 32].map(|at| usize::from(u16_at(head, at)))
}

/// The error of a record.
pub(super) enum Wrong {
    /// It is malformed.
    Malformed(&'static str),
    /// It is in another part of the archive.
    OtherDisk,
}

impl Entry {
    /// Parses the whole record `bytes`. Offsets are corrected by `shift`; the name goes to `name_start`.
    pub(super) fn parse(bytes: &[u8], shift: u64, name_start: u32) -> Result<Self, Wrong> {
        let [name_length, extra_length, _] = tails(bytes);
        let (name, rest) = bytes[HEAD..].split_at(name_length);
        let mut entry = Self {
            header_offset: u32_at(bytes, 42).into(),
            compressed_size: u32_at(bytes, 20).into(),
            size: u32_at(bytes, 24).into(),
            crc32: u32_at(bytes, 16),
            name_start,
            name_length: u16_at(bytes, 28),
            flags: u16_at(bytes, 8),
            method: u16_at(bytes, 10),
            kind: kind(name, u16_at(bytes, 4), u32_at(bytes, 38)),
            duplicate: false,
        };
        let mut disk = u32::from(u16_at(bytes, 34));
        entry.widen(&mut disk, &rest[..extra_length]).map_err(Wrong::Malformed)?;
        if disk != 0 {
            return Err(Wrong::OtherDisk);
        }
        entry.header_offset =
            entry.header_offset.checked_add(shift).ok_or(Wrong::Malformed("its offset is too large"))?;
        Ok(entry)
    }

    /// Takes values from the ZIP64 field that had no room, in the order of APPNOTE 4.5.3.
    fn widen(&mut self, disk: &mut u32, extra: &[u8]) -> Result<(), &'static str> {
        let most = u64::from(u32::MAX);
        let wide = [&mut self.size, &mut self.compressed_size, &mut self.header_offset];
        let missing = wide.iter().any(|value| **value == most) || *disk == u16::MAX.into();
        let mut field = match zip64_extra(extra)? {
            Some(field) => field,
            None if missing => return Err("a number is said to be in a ZIP64 field, which is not there"),
            None => return Ok(()),
        };
        for value in wide {
            if *value == most {
                let (head, rest) = field.split_at_checked(8).ok_or("its ZIP64 field is too short")?;
                *value = u64_at(head, 0);
                field = rest;
            }
        }
        if *disk == u16::MAX.into() {
            *disk = field.get(..4).map(|head| u32_at(head, 0)).ok_or("its ZIP64 field is too short")?;
        }
        Ok(())
    }
}

/// A folder by its name; else by the file type bits, if the writer was a Unix or macOS (APPNOTE 4.4.2).
fn kind(name: &[u8], made_by: u16, attributes: u32) -> Kind {
    match (name.last(), made_by >> 8) {
        (Some(b'/'), _) => Kind::Folder,
        (_, 3 | 19) => Kind::of_unix_mode(attributes >> 16),
        _ => Kind::File,
    }
}
