//! Where a bitstream lies.

use fixity::Sha256;
use serde::{Deserialize, Serialize};

use crate::{PackId, SourceId};

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
}

/// How a member's bytes are stored in its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// As they are.
    Stored,
}
