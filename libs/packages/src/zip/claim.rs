//! The directory's data of a member, by which the member can be found later.

use std::ops::Range;

use super::entry::{ENCRYPTED, PATCH};
use super::local::{self, Header};
use super::{Data, Directory, Member, Method};
use crate::{Kind, MemberPosition, PackageError, ReadAt};

/// The directory's data of a member without known errors. [`Claim::locate`] compares it with the member's own
/// header whenever the member is read, without the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The offset of its header, from the start of the package.
    pub header_offset: u64,
    /// The start of the next member, or of the directory: its data ends there at the latest.
    pub end: u64,
    /// The stored length in bytes.
    pub stored_length: u64,
    /// The compression method.
    pub method: Method,
    /// The length of its content.
    pub length: u64,
    /// The CRC-32 of its content.
    pub crc32: u32,
}

impl Directory {
    /// The claim of `member`, by which it can be found later. Nothing is read.
    ///
    /// # Errors
    /// Of the member: encrypted, an unknown method, no file, a duplicate name, over the limits, a stored size
    /// that is not the size.
    pub fn claim(&self, member: &Member<'_>) -> Result<Claim, PackageError> {
        self.check(member)?;
        Ok(Claim {
            header_offset: member.header_offset,
            end: self.end_of(member),
            stored_length: member.compressed_size,
            method: method(member)?,
            length: member.size,
            crc32: member.crc32,
        })
    }

    /// Checks of a member by the directory alone.
    fn check(&self, member: &Member<'_>) -> Result<(), PackageError> {
        let limits = &self.limits;
        let place = member.place();
        let name_bytes = member.name_bytes.len();
        match member.kind {
            Kind::File => {}
            Kind::Folder => return Err(PackageError::Folder { place }),
            Kind::Link => return Err(PackageError::Link { place }),
            Kind::Device => return Err(PackageError::Device { place }),
        }
        if member.flags & ENCRYPTED != 0 {
            return Err(PackageError::Encrypted { place });
        }
        if member.duplicate {
            return Err(PackageError::DuplicateName { place });
        }
        if name_bytes > limits.name_bytes {
            let bytes = name_bytes as u64;
            let limit = limits.name_bytes as u64;
            return Err(PackageError::NameTooLong { place, bytes, limit });
        }
        if member.size > limits.member_bytes {
            let bytes = member.size;
            let limit = limits.member_bytes;
            return Err(PackageError::MemberTooLarge { place, bytes, limit });
        }
        if limits.too_dense(member.compressed_size, member.size) {
            let stored = member.compressed_size;
            let inflated = member.size;
            let limit = limits.ratio;
            return Err(PackageError::MemberTooDense { place, stored, inflated, limit });
        }
        Ok(())
    }
}

impl Claim {
    /// Checks the header of the member, which has this name, and returns the location of its data. The caller
    /// can record it, or read it at once with a [`MemberReader`](super::MemberReader). It makes one or two
    /// small reads, which are within [`reach`](Self::reach) except for very long extra fields.
    ///
    /// # Errors
    /// All of the package: the header is missing, contradicts the directory, or makes the member overlap what
    /// follows. And [`PackageError::Read`].
    pub async fn locate(&self, source: &dyn ReadAt, name: &[u8]) -> Result<Data, PackageError> {
        let place = || MemberPosition::new(name, self.header_offset);
        let header = Header::read(source, self.header_range(name.len()), self.end, place).await?;
        header.check(self, name, place)?;
        let end = header.data_offset.saturating_add(self.stored_length);
        if end > self.end {
            let into = "what follows it".to_owned();
            return Err(PackageError::Overlap { place: place(), end, into, next: self.end });
        }
        Ok(Data {
            offset: header.data_offset,
            stored_length: self.stored_length,
            method: self.method,
            length: self.length,
            crc32: Some(self.crc32),
        })
    }

    /// The range of header and data, for a name of this many bytes; usually its last bytes belong to the next
    /// member. For callers that read many members at once.
    pub fn reach(&self, name_bytes: usize) -> Range<u64> {
        let header = self.header_range(name_bytes);
        header.start..header.end.saturating_add(self.stored_length).min(self.end)
    }

    fn header_range(&self, name_bytes: usize) -> Range<u64> {
        let head = (local::HEAD + name_bytes + local::EXTRA) as u64;
        // `order_spans` has checked that head and name are before the end.
        self.header_offset..self.header_offset.saturating_add(head).min(self.end)
    }
}

fn method(member: &Member<'_>) -> Result<Method, PackageError> {
    match member.method {
        0 if member.flags & PATCH == 0 && member.compressed_size == member.size => Ok(Method::Stored),
        0 if member.flags & PATCH == 0 => Err(PackageError::WrongSize {
            place: member.place(),
            declared: member.size,
            found: format!("is stored as it is in {} bytes", member.compressed_size),
        }),
        8 if member.flags & PATCH == 0 => Ok(Method::Deflated),
        method => Err(PackageError::UnknownMethod { place: member.place(), method }),
    }
}
