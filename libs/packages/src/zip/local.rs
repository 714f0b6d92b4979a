//! A member's own header, and whether it says what the directory says.

use std::ops::Range;

use super::bytes::{u16_at, u32_at, u64_at, zip64_extra};
use super::entry::{DESCRIPTOR, ENCRYPTED, PATCH};
use super::{Data, Directory, Member, Method};
use crate::read_at::read_exactly;
use crate::{Kind, PackageError, ReadAt, name};

/// Bytes of a local header before its name.
pub(super) const HEAD: usize = 30;
/// Bytes of the extra field that are read along with the header: the ZIP64 field and most others fit.
const EXTRA: usize = 128;

impl Directory {
    /// Checks `member` against its own header and tells where its data lies, to be recorded or to be read at once by a
    /// [`MemberReader`](super::MemberReader). One or two small reads.
    ///
    /// # Errors
    /// Of the member: encrypted, an unknown method, no file, a name of another member, over the limits, a stored size that is not the size.
    /// Of the package: the header is not there, contradicts the directory, or makes the member run into the next one. And
    /// [`PackageError::Read`].
    pub async fn locate(&self, source: &dyn ReadAt, member: &Member<'_>) -> Result<Data, PackageError> {
        self.check(member)?;
        let method = method(member)?;
        let header = Header::read(source, member, self.directory_offset).await?;
        header.check(member)?;
        let end = header.data_offset.saturating_add(member.compressed_size);
        let no_header = || PackageError::NoHeader { place: member.place() };
        self.check_end(self.rank(member.header_offset).ok_or_else(no_header)?, end)?;
        Ok(Data {
            offset: header.data_offset,
            stored_length: member.compressed_size,
            method,
            length: member.size,
            crc32: Some(member.crc32),
        })
    }

    /// The bytes that [`locate`](Self::locate) reads first of a member, and mostly alone: for callers that read those of many
    /// members at once.
    pub fn header_range(&self, member: &Member<'_>) -> Range<u64> {
        header_range(member, self.directory_offset)
    }

    /// What the directory alone tells against a member.
    fn check(&self, member: &Member<'_>) -> Result<(), PackageError> {
        let (limits, place) = (&self.limits, member.place());
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
            let (bytes, limit) = (name_bytes as u64, limits.name_bytes as u64);
            return Err(PackageError::NameTooLong { place, bytes, limit });
        }
        if member.size > limits.member_bytes {
            let (bytes, limit) = (member.size, limits.member_bytes);
            return Err(PackageError::MemberTooLarge { place, bytes, limit });
        }
        if limits.too_dense(member.compressed_size, member.size) {
            let (stored, inflated, limit) = (member.compressed_size, member.size, limits.ratio);
            return Err(PackageError::MemberTooDense { place, stored, inflated, limit });
        }
        Ok(())
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

fn header_range(member: &Member<'_>, directory: u64) -> Range<u64> {
    let start = member.header_offset;
    // `order_spans` has seen that head and name lie before the directory.
    start..start.saturating_add((HEAD + member.name_bytes.len() + EXTRA) as u64).min(directory)
}

struct Header {
    flags: u16,
    method: u16,
    crc32: u32,
    compressed_size: u64,
    size: u64,
    name: Vec<u8>,
    data_offset: u64,
}

impl Header {
    async fn read(source: &dyn ReadAt, member: &Member<'_>, end: u64) -> Result<Self, PackageError> {
        let place = || member.place();
        let start = member.header_offset;
        let range = header_range(member, end);
        let mut bytes = read_exactly(source, start, (range.end - range.start) as usize).await?;
        if u32_at(&bytes, 0) != 0x0403_4b50 {
            return Err(PackageError::NoHeader { place: place() });
        }
        let (name_length, extra_length) = (usize::from(u16_at(&bytes, 26)), usize::from(u16_at(&bytes, 28)));
        let whole = HEAD + name_length + extra_length;
        if whole > bytes.len() {
            if whole as u64 > end - start {
                let next = "the directory".to_owned();
                return Err(PackageError::Overlap {
                    place: place(),
                    end: start + whole as u64,
                    into: next,
                    next: end,
                });
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

    /// Takes the sizes from the ZIP64 field where they had no room. A field that is malformed leaves them as they are, to
    /// contradict the directory.
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

    fn check(&self, member: &Member<'_>) -> Result<(), PackageError> {
        let contradicts = |field, header: String, directory: String| {
            Err(PackageError::HeaderContradicts { place: member.place(), field, header, directory })
        };
        if self.name != member.name_bytes {
            let text = |name: &[u8]| format!("“{}”", name::shown(name));
            return contradicts("its name is", text(&self.name), text(member.name_bytes));
        }
        if self.method != member.method {
            return contradicts("the method is", self.method.to_string(), member.method.to_string());
        }
        if self.flags & ENCRYPTED != member.flags & ENCRYPTED {
            return contradicts("it is encrypted:", "yes".to_owned(), "no".to_owned());
        }
        // Where they follow the data, many writers leave 0 here, or have left room for ZIP64 that was not needed.
        let later = self.flags & DESCRIPTOR != 0;
        let differ = |header: u64, directory: u64| header != directory && !(later && header == 0);
        let numbers = [
            ("the size is", self.size, member.size),
            ("the stored size is", self.compressed_size, member.compressed_size),
        ];
        for (field, header, directory) in numbers {
            if differ(header, directory) && !(later && header == u32::MAX.into()) {
                return contradicts(field, header.to_string(), directory.to_string());
            }
        }
        if differ(self.crc32.into(), member.crc32.into()) {
            let hex = |crc: u32| format!("{crc:08x}");
            return contradicts("the CRC-32 is", hex(self.crc32), hex(member.crc32));
        }
        Ok(())
    }
}
