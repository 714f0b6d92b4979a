//! How much of a stranger's JSON is read.

/// How much of a stranger's JSON is read. What goes beyond is refused whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes. Default: 64 KiB.
    pub bytes: usize,
    /// How deep arrays and objects may lie in each other, at most 100. Default: 20.
    pub depth: usize,
    /// The most values: members of objects, items of arrays, and the whole itself. Default: 2,000.
    pub members: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 * 1024, depth: 20, members: 2_000 }
    }
}
