//! What can be set.

use packages::Limits;
use serde::Deserialize;

/// What can be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UnpackerConfig {
    /// Members of tar packages up to this many bytes travel in packs; 0 = each is an object of its own.
    pub small_bytes: usize,
    /// Members, and entries of the manifest, that a package may have.
    pub members: u64,
    /// Bytes of a ZIP's directory. It is held in memory.
    pub directory_bytes: u64,
    /// Bytes of one member once inflated.
    pub member_bytes: u64,
    /// Bytes of all members once inflated.
    pub inflated_bytes: u64,
    /// How many times larger than its stored bytes a member may be, or a compressed tar as a whole, beyond 64 MiB.
    pub ratio: u64,
    /// Memory that the decoder of a compressed tar may take, in bytes.
    pub decoder_bytes: u64,
}

impl Default for UnpackerConfig {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            small_bytes: 256 * 1024,
            members: limits.members,
            directory_bytes: 128 << 20,
            member_bytes: limits.member_bytes,
            inflated_bytes: limits.inflated_bytes_total,
            ratio: limits.ratio,
            decoder_bytes: limits.decoder_bytes,
        }
    }
}

impl UnpackerConfig {
    /// The limits in the words of the reader of packages.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            members: self.members.min(u32::MAX.into()),
            directory_bytes: self.directory_bytes,
            member_bytes: self.member_bytes,
            inflated_bytes_total: self.inflated_bytes,
            ratio: self.ratio,
            decoder_bytes: self.decoder_bytes,
            ..Limits::default()
        }
    }
}
