//! Damage: stored bytes that are not what they were when they were stored.

use fixity::Sha256;
use serde::{Deserialize, Serialize};

/// What was found where a bitstream is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DamageFound {
    /// Whether there is anything at all under the key.
    pub is_there: bool,
    /// How many bytes there are of the bitstream, as far as they can be told apart from what lies beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Their digest; none where they cannot be inflated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
}

/// A bitstream that is not what it was when it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The key of the object that it lies in.
    pub key: String,
    /// Where it begins there, in bytes.
    pub offset: u64,
    /// The length that it had.
    pub expected_length: u64,
    /// The digest that it had.
    pub expected_sha256: Sha256,
    /// What is there now.
    pub found: DamageFound,
    /// Where the damaged object was put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}
