//! A stored package, read by ranges.

use packages::ReadAhead;
pub(crate) use store::RangeReader as Stored;

/// Block size for many small reads, which a few large requests serve. For a store a request costs about as much as
/// several MB.
pub(crate) const BLOCK: usize = 4 << 20;
/// Read-ahead for large ranges.
pub(crate) const AHEAD: ReadAhead = ReadAhead { chunk: 4 << 20, reads: 2 };
