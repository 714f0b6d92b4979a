use std::borrow::Cow;
use std::fmt;

use crate::{Kind, MemberPosition, NameOddity, name};

/// A member, as the directory describes it. It is not checked yet:
/// [`Directory::locate`](super::Directory::locate) does that.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// Its number, counted from 0 in the order of the directory.
    pub index: u32,
    /// Its name as written. [`name`](Self::name) is the same as text.
    pub name_bytes: &'a [u8],
    /// Its declared kind.
    pub kind: Kind,
    /// The number of its compression method (APPNOTE 4.4.5): 0 is stored, 8 is deflate, no others are
    /// supported.
    pub method: u16,
    /// Its general purpose flags (APPNOTE 4.4.4).
    pub flags: u16,
    /// The CRC-32 of its content.
    pub crc32: u32,
    /// Bytes as stored.
    pub compressed_size: u64,
    /// Bytes of its content.
    pub size: u64,
    /// The offset of its header, from the start of the package.
    pub header_offset: u64,
    /// Whether other members have the same name, so that none of them can be used.
    pub duplicate: bool,
}

impl<'a> Member<'a> {
    /// Its name as text: UTF-8, or code page 437 if it is not UTF-8, whatever its flags say.
    pub fn name(&self) -> Cow<'a, str> {
        name::text(self.name_bytes)
    }

    /// The oddities of its name.
    pub fn name_oddities(&self) -> Vec<NameOddity> {
        NameOddity::of(self.name_bytes)
    }

    /// The member's place, for messages.
    pub fn place(&self) -> MemberPosition {
        MemberPosition::new(self.name_bytes, self.header_offset)
    }
}

impl fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes as {}, {})", self.place(), self.size, self.compressed_size, self.kind)
    }
}
