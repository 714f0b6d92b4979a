//! The index of a package: the entries of its manifest in slices, each with its member's data from the directory. It
//! is an object beside the package.
//!
//! It has one line of JSON per entry, and at its end a table with a row of 16 bytes per slice, the last slice first.
//! So a slice's row is found by its number, counted from the end. Slices are numbered in the order of the manifest,
//! except those that take much longer than others. These have the first numbers, so that they are started first and
//! no unpacker waits for a long one at the end.

mod read;
#[cfg(test)]
mod tests;
mod writer;

use std::ops::Range;

use model::{Failure, ManifestEntry, MemberResult, Method, Persisted};
use packages::zip::{self, Claim};
use serde::{Deserialize, Serialize};

pub(crate) use self::read::{Remembered, read};
pub(crate) use self::writer::Writer;

/// Maximum entries of a slice.
pub(crate) const SLICE_ENTRIES: usize = 256;
/// Cost of a byte that is inflated and hashed, compared with one that is only hashed.
const INFLATED_BYTE: u64 = 4;
/// Bytes of an outcome beside those of its entry: location, digests, and an error message.
const OUTCOME_BYTES: u64 = 1_536;

/// Format version. Rows begin with it, so that no other index is mistaken for one.
const VERSION: u16 = Persisted::Packages.version();
const ROW: u64 = 16;

/// Location of a member in a ZIP, from the directory. It is compared with the member's own header when the member is
/// read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberLocation {
    pub(crate) header_offset: u64,
    /// Start of what follows the member.
    pub(crate) end: u64,
    pub(crate) stored_length: u64,
    pub(crate) method: Method,
    /// Length of its content in bytes.
    pub(crate) length: u64,
    pub(crate) crc32: u32,
    /// The member's name, which its header must match.
    pub(crate) name: Name,
}

/// The name of a member, usually text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

/// Result for an entry when the package was opened.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Found {
    /// Location of its member.
    Member(MemberLocation),
    /// No member is to be read, and why.
    Nothing(Box<MemberResult>),
}

/// A line of the index.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) entry: ManifestEntry,
    pub(crate) found: Found,
}

impl Found {
    /// A failure that prevents taking its member.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Nothing(Box::new(MemberResult::Failed(failure)))
    }

    /// Location of its member, if one is to be read.
    pub(crate) fn place(&self) -> Option<&MemberLocation> {
        match self {
            Self::Member(place) => Some(place),
            Self::Nothing(_) => None,
        }
    }

    /// Bytes that are read for it, once inflated.
    fn length(&self) -> u64 {
        self.place().map_or(0, |place| place.length)
    }

    /// Cost of judging it, in bytes that are only hashed.
    fn work(&self) -> u64 {
        let each = match self.place().map(|place| place.method) {
            Some(Method::Deflated) => INFLATED_BYTE,
            _ => 1,
        };
        self.length().saturating_mul(each)
    }
}

impl MemberLocation {
    /// Location of the member with this name.
    pub(crate) fn new(claim: Claim, name: &[u8]) -> Self {
        let Claim { header_offset, end, stored_length, method, length, crc32 } = claim;
        let method = match method {
            zip::Method::Stored => Method::Stored,
            zip::Method::Deflated => Method::Deflated,
        };
        Self { header_offset, end, stored_length, method, length, crc32, name: Name::new(name) }
    }

    /// The directory's data to find it by.
    pub(crate) fn claim(&self) -> Claim {
        let &Self { header_offset, end, stored_length, method, length, crc32, .. } = self;
        let method = match method {
            Method::Stored => zip::Method::Stored,
            Method::Deflated => zip::Method::Deflated,
        };
        Claim { header_offset, end, stored_length, method, length, crc32 }
    }

    /// Range of its header and data.
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

/// Estimated maximum size of an entry's outcome on the bus: its spooled line has `line` bytes, and a failure repeats
/// its URI.
pub(crate) fn outcome_bytes(line: u64) -> u64 {
    2 * line + OUTCOME_BYTES
}
