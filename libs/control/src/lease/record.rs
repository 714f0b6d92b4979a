//! What a lease is to others.

use jiff::Timestamp;
use model::{Message, SourceId};
use serde::{Deserialize, Serialize};

use crate::members::MemberId;
use crate::runs::Tenure;
use crate::table::Kept;
use crate::{Revised, Revision};

/// Who owns a Source. It is there as long as its holder renews it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// Who.
    pub holder: MemberId,
    /// Which ownership: larger than every one before it. It is the revision of the first writing, which therefore
    /// cannot hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Revision>,
    /// Since when, by the holder's clock.
    pub since: Timestamp,
}

impl Revised<LeaseRecord> {
    /// Whose ownership it is.
    pub fn tenure(&self) -> Tenure {
        Tenure::new(self.holder.clone(), self.epoch.unwrap_or(self.revision))
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
