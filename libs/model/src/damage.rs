//! Damage: stored bytes that differ from those that were stored.

use fixity::Sha256;
use serde::{Deserialize, Serialize};

/// The bytes found at a bitstream's location.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DamageFound {
    /// Whether the object exists.
    pub is_there: bool,
    /// The length of the bitstream, as far as it can be told apart from its neighbours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Their digest; none if they cannot be inflated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
}

/// A damaged bitstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The key of its object.
    pub key: String,
    /// Its offset in the object, in bytes.
    pub offset: u64,
    /// The expected length.
    pub expected_length: u64,
    /// The expected digest.
    pub expected_sha256: Sha256,
    /// The bytes found.
    pub found: DamageFound,
    /// The key of the damaged object in quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}
