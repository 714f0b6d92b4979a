use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::record::{RecordHeader, Status};

/// The digest of a page: of the identifiers, datestamps and states in it, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PageDigest(u64);

impl PageDigest {
    pub(crate) fn of(digest: &Sha256) -> Self {
        Self(first_bytes(&digest.clone().finalize()))
    }
}

impl RecordHeader {
    /// Adds what tells this state of the record from another.
    pub(crate) fn add_to(&self, digest: &mut Sha256) {
        digest.update(self.identifier.as_bytes());
        let second = self.datestamp.map_or(i64::MIN, |time| time.instant().as_second());
        // No identifier has a NUL, so each header ends in a place of its own.
        digest.update([0, u8::from(self.status == Status::Deleted)]);
        digest.update(second.to_le_bytes());
    }
}

/// The first eight bytes of a digest, as a number.
pub(crate) fn first_bytes(digest: &[u8]) -> u64 {
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
