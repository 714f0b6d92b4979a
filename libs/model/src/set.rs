//! Sets of resources: one per Capability List.

use jiff::Timestamp;
use resourcesync::Capability;
use serde::{Deserialize, Serialize};

/// A set of resources, and how far it is synchronized.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SetRecord {
    /// What the set offers, in the Capability List's order.
    pub capabilities: Vec<CapabilityLink>,
    /// Whether it may offer more than that: its Capability List was cut short, or has an entry that cannot be used. What such a
    /// set's lists do not name may stand in one that nobody found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
    /// `at` of the last Resource List that was read whole: every change up to it is in it (RS-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_at: Option<Timestamp>,
    /// Whether a baseline was ever completed.
    #[serde(default)]
    pub has_baseline: bool,
    /// The latest change that is settled or recorded as a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronized_to: Option<Timestamp>,
}

/// One capability of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityLink {
    /// What it is.
    pub capability: Capability,
    /// The document's URI.
    pub uri: String,
}

impl SetRecord {
    /// The documents of one kind.
    pub fn documents(&self, capability: &Capability) -> impl Iterator<Item = &str> {
        self.capabilities.iter().filter(move |c| c.capability == *capability).map(|c| c.uri.as_str())
    }
}
