//! Settings of unpack jobs.

use packages::Limits;
use serde::Deserialize;

/// Settings of unpack jobs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UnpackerConfig {
    /// Members of tar packages up to this many bytes go into packs; 0 = each is an object of its own.
    pub pack_threshold_bytes: usize,
    /// Maximum members, and entries of the manifest, of a package.
    pub max_members: u64,
    /// Maximum bytes of a ZIP's directory. It is read into memory.
    pub max_directory_bytes: u64,
    /// Maximum bytes of one member once inflated.
    pub max_member_bytes: u64,
    /// Maximum bytes of all members once inflated.
    pub max_inflated_bytes: u64,
    /// Maximum ratio of a member's size to its stored size, or of a compressed tar as a whole, beyond 64 MiB.
    pub max_ratio: u64,
    /// Maximum memory of the decoder of a compressed tar, in bytes.
    pub max_decoder_bytes: u64,
}

impl Default for UnpackerConfig {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            pack_threshold_bytes: 256 * 1024,
            max_members: limits.members,
            max_directory_bytes: 128 << 20,
            max_member_bytes: limits.member_bytes,
            max_inflated_bytes: limits.inflated_bytes_total,
            max_ratio: limits.ratio,
            max_decoder_bytes: limits.decoder_bytes,
        }
    }
}

impl UnpackerConfig {
    /// The same limits, for the package reader.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            members: self.max_members.min(u32::MAX.into()),
            directory_bytes: self.max_directory_bytes,
            member_bytes: self.max_member_bytes,
            inflated_bytes_total: self.max_inflated_bytes,
            ratio: self.max_ratio,
            decoder_bytes: self.max_decoder_bytes,
            ..Limits::default()
        }
    }
}
