//! A member's own header, compared with the directory.

use std::ops::Range;

use super::bytes::{u16_at, u32_at, u64_at, zip64_extra};
use super::claim::Claim;
use super::entry::{DESCRIPTOR, ENCRYPTED};
use super::{Data, Directory, Member, Method};
use crate::read_at::read_exactly;
use crate::{MemberPosition, PackageError, ReadAt, name};

/// Bytes of a local header before its name.
pub(super) const HEAD: usize = 30;
/// Bytes of the extra field that are read along with the header: the ZIP64 field and most others fit.
pub(super) const EXTRA: usize = 128;

impl Directory {
    /// Checks `member` against its own header and returns the location of its data: [`claim`](Self::claim)
    /// and [`Claim::locate`] in one.
    ///
    /// # Errors
    /// Those of both.
    pub async fn locate(&self, source: &dyn ReadAt, member: &Member<'_>) -> Result<Data, PackageError> {
        let located = self.claim(member)?.locate(source, member.name_bytes).await;
        located.map_err(|error| match error {
            PackageError::Overlap { place, end, next, .. } => {
                PackageError::Overlap { place, end, into: self.what_begins_at(next), next }
            }
            error => error,
        })
    }
}

/// A member's own header.
pub(super) struct Header {
    flags: u16,
    method: u16,
    crc32: u32,
    compressed_size: u64,
    size: u64,
    name: Vec<u8>,
    pub(super) data_offset: u64,
}

impl Header {
    /// Reads the header at the start of `range`, which ends before `end`. A longer one costs a second read.
    pub(super) async fn read(
        source: &dyn ReadAt,
        range: Range<u64>,
        end: u64,
        place: impl Fn() -> MemberPosition,
    ) -> Result<Self, PackageError> {
        let start = range.start;
        let mut bytes = read_exactly(source, start, (range.end - start) as usize).await?;
        if u32_at(&bytes, 0) != 0x0403_4b50 {
            return Err(PackageError::NoHeader { place: place() });
        }
        let name_length = usize::from(u16_at(&bytes, 26));
        let extra_length = usize::from(u16_at(&bytes, 28));
        let whole = HEAD + name_length + extra_length;
        if whole > bytes.len() {
            if whole as u64 > end - start {
                let into = "what follows it".to_owned();
                let after = start + whole as u64;
                return Err(PackageError::Overlap { place: place(), end: after, into, next: end });
            }
            bytes = read_exactly(source, start, whole).await?;
        }
        let mut header = Self {
            flags: u16_at(&bytes, 6),
            method: u16_at(&bytes, 8),
            crc32: u32_at(&bytes, 14),
            compressed_size: u32_at(&bytes, 18).into(),
            size: u32_at(&bytes, 22).into(),
            name: bytes[HEAD..HEAD + name_length].to_vec(),
            data_offset: start + whole as u64,
        };
        header.widen(&bytes[HEAD + name_length..whole]);
        Ok(header)
    }

    /// Takes the sizes from the ZIP64 field if they had no room. A malformed field leaves them unchanged, so
    /// that they contradict the directory.
    fn widen(&mut self, extra: &[u8]) {
        let Ok(Some(mut field)) = zip64_extra(extra) else { return };
        for value in [&mut self.size, &mut self.compressed_size] {
            if *value == u64::from(u32::MAX)
                && let Some((head, rest)) = field.split_at_checked(8)
            {
                *value = u64_at(head, 0);
                field = rest;
            }
        }
    }

    /// Compares it with the directory.
    pub(super) fn check(
        &self,
        claim: &Claim,
        name: &[u8],
        place: impl Fn() -> MemberPosition,
    ) -> Result<(), PackageError> {
        let contradicts = |field, header: String, directory: String| {
            Err(PackageError::HeaderContradicts { place: place(), field, header, directory })
        };
        if self.name != name {
            let text = |bytes: &[u8]| format!("“{}”", name::shown(bytes));
            return contradicts("its name is", text(&self.name), text(name));
        }
        let method = match claim.method {
            Method::Stored => 0,
            Method::Deflated => 8,
        };
        if self.method != method {
            return contradicts("the method is", self.method.to_string(), method.to_string());
        }
        // Members that the central directory marks as encrypted are not claimed.
        if self.flags & ENCRYPTED != 0 {
            return contradicts("it is encrypted:", "yes".to_owned(), "no".to_owned());
        }
        // If they follow the data, many writers leave 0 here, or left room for a ZIP64 field that was not
        // needed.
        let later = self.flags & DESCRIPTOR != 0;
        let differ = |header: u64, directory: u64| header != directory && !(later && header == 0);
        let numbers = [
            ("the size is", self.size, claim.length),
            ("the stored size is", self.compressed_size, claim.stored_length),
        ];
        for (field, header, directory) in numbers {
            if differ(header, directory) && !(later && header == u32::MAX.into()) {
                return contradicts(field, header.to_string(), directory.to_string());
            }
        }
        if differ(self.crc32.into(), claim.crc32.into()) {
            let hex = |crc: u32| format!("{crc:08x}");
            return contradicts("the CRC-32 is", hex(self.crc32), hex(claim.crc32));
        }
        Ok(())
    }
}
