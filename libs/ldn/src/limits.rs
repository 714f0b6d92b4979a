//! Limits of untrusted JSON.

/// Limits of untrusted JSON. A document beyond them is refused as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes. Default: 64 KiB.
    pub bytes: usize,
    /// The deepest nesting of arrays and objects, at most 100. Default: 20.
    pub depth: usize,
    /// The most values: members of objects, items of arrays, and the document itself. Default: 2,000.
    pub members: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 * 1024, depth: 20, members: 2_000 }
    }
}
