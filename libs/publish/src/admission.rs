//! What a subscriber was admitted by.

use serde::{Deserialize, Serialize};

/// What a subscriber was admitted by, where readers may change: it is told no longer than that holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// Which readers the publication had, in a word that changes with them. Empty: all.
    #[serde(default, rename = "admitted_by", skip_serializing_if = "String::is_empty")]
    pub readers: String,
    /// Which token it had, in a word that does not give the token away. Empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
}
