//! The record of a lease, as other processes see it.

use jiff::Timestamp;
use model::{Message, SourceId};
use serde::{Deserialize, Serialize};

use crate::members::MemberId;
use crate::runs::LeaseTerm;
use crate::table::Kept;
use crate::{Revision, Versioned};

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
    /// The tenure of this ownership.
    pub fn tenure(&self) -> LeaseTerm {
        LeaseTerm::new(self.holder.clone(), self.epoch.unwrap_or(self.revision))
    }
}

impl Message for LeaseRecord {
    const KIND: &'static str = "lease";
    const VERSION: u16 = 1;
}

impl Kept for LeaseRecord {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }
}
