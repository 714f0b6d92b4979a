//! The index of a package: the entries of its manifest in slices, each with what the directory says of its member, as an object beside the package.
//!
//! It has one line of JSON for each entry, and at its end a table with a row of 16 bytes for each slice, the last slice first: so the
//! row of a slice is found by its number from the end. Slices are numbered in the order of the manifest, but for those that take
//! much longer than others: they have the first numbers, so that they are begun first and nobody waits for a long one at the end.

mod read;
#[cfg(test)]
mod tests;
mod writer;

use std::ops::Range;

use model::{Failure, ManifestEntry, MemberResult, Method};
use packages::zip::{self, Claim};
use serde::{Deserialize, Serialize};

pub(crate) use self::read::{Remembered, read};
pub(crate) use self::writer::Writer;

/// Entries of a slice, at most.
pub(crate) const SLICE_ENTRIES: usize = 256;
/// How much longer a byte takes that is inflated before it is hashed, than one that is only hashed.
const INFLATED_BYTE: u64 = 4;
/// Bytes of an outcome beside what stands in the entry: place, digests, and words when it failed.
const OUTCOME_BYTES: u64 = 1_536;

/// The format. Rows begin with it, so that no other index is taken for one.
const VERSION: u16 = 2;
const ROW: u64 = 16;

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

    /// Bytes that are read for it, once inflated.
    fn length(&self) -> u64 {
        self.place().map_or(0, |place| place.length)
    }

    /// How long it takes to be judged, in bytes that are only hashed.
    fn work(&self) -> u64 {
        let each = match self.place().map(|place| place.method) {
            Some(Method::Deflated) => INFLATED_BYTE,
            _ => 1,
        };
        self.length().saturating_mul(each)
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
