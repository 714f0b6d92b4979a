/// Limits of a package, and of the memory for reading it.
///
/// Packages come from third parties, so each limit is checked before anything is stored or inflated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Members of one package. More refuse the package.
    pub members: u64,
    /// Bytes of a ZIP's central directory. More refuse the package: the names in it are held in memory.
    pub directory_bytes: u64,
    /// Bytes of one member's name. A longer one refuses the member.
    pub name_bytes: usize,
    /// Total bytes of the records before one tar member (its long name, its PAX records). More refuse the
    /// package.
    pub extension_bytes: u64,
    /// Inflated bytes of one member. More refuse the member.
    pub member_bytes: u64,
    /// Inflated bytes of all members. More refuse the package.
    pub inflated_bytes_total: u64,
    /// How many times larger than its stored bytes a ZIP member may be, or a compressed tar as a whole, once
    /// it is larger than [`ratio_floor_bytes`](Self::ratio_floor_bytes).
    ///
    /// Deflate itself reaches at most 1 : 1,032, and hostile archives come close to that. The contents of
    /// honest repositories (XML, logs, tables) stay under 1 : 100.
    pub ratio: u64,
    /// Bytes below which no ratio is too high: a small file of zeros is harmless.
    pub ratio_floor_bytes: u64,
    /// Bytes that the decoder of xz or zstd may use. `xz -9` needs 65 MiB, `zstd --ultra --long` 128 MiB.
    pub decoder_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            members: 1_000_000,
            directory_bytes: 256 << 20,
            name_bytes: 4 << 10,
            extension_bytes: 1 << 20,
            member_bytes: 256 << 30,
            inflated_bytes_total: 1 << 40,
            ratio: 500,
            ratio_floor_bytes: 64 << 20,
            decoder_bytes: 128 << 20,
        }
    }
}

impl Limits {
    /// Whether `inflated` bytes out of `stored` ones are more than [`ratio`](Self::ratio) allows.
    pub(crate) fn too_dense(&self, stored: u64, inflated: u64) -> bool {
        inflated > self.ratio_floor_bytes && inflated > stored.saturating_mul(self.ratio)
    }
}
