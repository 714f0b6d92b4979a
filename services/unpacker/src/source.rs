//! A stored package, read by ranges.

use packages::ReadAhead;
pub(crate) use store::RangeReader as Stored;

/// Bytes of a block, where many small reads are answered from a few large ones. To a store a request costs about as much as several MB do.
pub(crate) const BLOCK: usize = 4 << 20;
/// How long ranges are read.
pub(crate) const AHEAD: ReadAhead = ReadAhead { chunk: 4 << 20, reads: 2 };
