//! The record of a lease, as other processes see it.

use jiff::Timestamp;
use model::{Message, Persisted, SourceId};
use serde::{Deserialize, Serialize};

use crate::kept::Kept;
use crate::members::MemberId;
use crate::versioned::{Revision, Versioned};

/// An ownership of a Source: from acquiring its lease until losing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseTerm {
    /// The owner.
    pub owner: MemberId,
    /// The epoch: larger than that of every earlier term.
    pub epoch: Revision,
}

/// The owner of a Source. The record exists as long as the holder renews it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// The holder.
    pub holder: MemberId,
    /// The epoch: larger than that of every earlier ownership. It is the revision of the first write, so that write
    /// itself cannot contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Revision>,
    /// The beginning of the ownership, by the holder's clock.
    pub since: Timestamp,
}

impl Versioned<LeaseRecord> {
    /// The term of this ownership.
    pub fn term(&self) -> LeaseTerm {
        LeaseTerm { owner: self.holder.clone(), epoch: self.epoch.unwrap_or(self.revision) }
    }
}

impl Message for LeaseRecord {
    const KIND: &'static str = "lease";
    const VERSION: u16 = Persisted::Leases.version();
}

impl Kept for LeaseRecord {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }

    fn describe(source: &SourceId) -> String {
        format!("lease of {source}")
    }
}
