//! Where a bitstream lies.

use fixity::Sha256;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{PackId, PackageId, SourceId};

/// Where a verified bitstream lies in the store. What lies there never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Location {
    /// An object of its own, addressed by its content.
    Object {
        /// The content's digest, which is the object's name.
        sha256: Sha256,
    },
    /// A member of a pack (`packs/<source>/<pack>.zip`).
    Pack {
        /// The Source whose pack it is.
        source: SourceId,
        /// The pack.
        pack: PackId,
        /// Where the member's stored bytes begin, in bytes from the start of the pack.
        offset: u64,
        /// How many bytes are stored.
        stored_length: u64,
        /// How they are stored.
        method: Method,
    },
    /// A member of a dump's package, adopted where it lies (`packages/<source>/<package>`).
    Package {
        /// The Source whose package it is.
        source: SourceId,
        /// The package.
        package: PackageId,
        /// Where the member's stored bytes begin, in bytes from the start of the package. 0 in the location of a whole package.
        offset: u64,
        /// How many bytes are stored.
        stored_length: u64,
        /// How they are stored.
        method: Method,
    },
}

/// The part of an archive that a member's stored bytes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where they begin, in bytes from the start of the archive.
    pub offset: u64,
    /// How many they are.
    pub stored_length: u64,
    /// How they are stored.
    pub method: Method,
}

/// A pack that was mostly dead: what was alive in it lies in others now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewrittenPack {
    /// The pack.
    pub pack: PackId,
    /// When the records began to point elsewhere.
    pub at: Timestamp,
}

impl Location {
    /// The part of its object that a bitstream takes; none for one that has an object of its own.
    pub fn span(&self) -> Option<Span> {
        match *self {
            Self::Object { .. } => None,
            Self::Pack { offset, stored_length, method, .. }
            | Self::Package { offset, stored_length, method, .. } => {
                Some(Span { offset, stored_length, method })
            }
        }
    }
}

/// How a member's bytes are stored in its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// As they are.
    Stored,
    /// By deflate (RFC 1951), without any frame around it.
    Deflated,
}
