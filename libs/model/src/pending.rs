//! Work that is not done yet.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Account, Declaration, Lane, Listing, Seq, StoredBitstream};

/// What is to be done with a resource. Keyed by its URI, so a later change overwrites an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRecord {
    /// The plan's number: an outcome of an earlier plan does not settle this one.
    pub seq: Seq,
    /// What to do.
    #[serde(flatten)]
    pub action: Action,
    /// What the Source declared.
    #[serde(default)]
    pub declaration: Declaration,
    /// The entry that asks for it.
    pub listing: Listing,
    /// Attempts made in this run.
    #[serde(default)]
    pub attempts: u32,
    /// Not to be tried before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// What was received earlier and was not what was declared then. Where it is what is declared now, it is judged instead of
    /// being fetched again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Box<StoredBitstream>>,
    /// What is held is not to be relied on: what comes replaces it, even if it is the same bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mend: bool,
    /// Why it is planned, and what was tried in vain in this run.
    #[serde(default, skip_serializing_if = "Account::is_empty")]
    pub account: Account,
}

/// What to do with a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum Action {
    /// Fetch and verify it.
    Fetch {
        /// The origin to ask.
        lane: Lane,
    },
    /// Remove it, as the Source did.
    Delete,
}
