//! How much of what a stranger sends is read.

/// Maximum attributes of a link that are kept. More are dropped, with a fault.
pub const MOST_ATTRIBUTES: usize = 32;

/// Bounds of one reading. What is beyond them is dropped, with a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum links, or versions of a TimeMap.
    pub links: usize,
    /// Maximum bytes of all headers, or of a body.
    pub bytes: usize,
    /// Maximum bytes of a URL or of the value of an attribute.
    pub value_bytes: usize,
}

impl Limits {
    /// For the `Link` headers of one response.
    pub const HEADER: Self = Self { links: 10_000, bytes: 1024 * 1024, value_bytes: 8 * 1024 };
    /// For the head of one page.
    pub const PAGE: Self = Self { links: 1_000, bytes: 1024 * 1024, value_bytes: 8 * 1024 };
    /// For one link set or TimeMap.
    pub const BODY: Self = Self { links: 100_000, bytes: 16 * 1024 * 1024, value_bytes: 8 * 1024 };
}
