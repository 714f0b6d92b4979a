//! Settings of unpack jobs.

use packages::Limits;
use serde::Deserialize;

/// Settings of unpack jobs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UnpackerConfig {
    /// Members of tar packages up to this many bytes go into packs; 0 = each is an object of its own.
    pub small_bytes: usize,
    /// Maximum members, and entries of the manifest, of a package.
    pub members: u64,
    /// Maximum bytes of a ZIP's directory. It is read into memory.
    pub directory_bytes: u64,
    /// Maximum bytes of one member once inflated.
    pub member_bytes: u64,
    /// Maximum bytes of all members once inflated.
    pub inflated_bytes: u64,
    /// Maximum ratio of a member's size to its stored size, or of a compressed tar as a whole, beyond 64 MiB.
    pub ratio: u64,
    /// Maximum memory of the decoder of a compressed tar, in bytes.
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
    /// The same limits, for the package reader.
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
