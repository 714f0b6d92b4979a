/// How a member's bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// As they are (method 0).
    Stored,
    /// Deflated (method 8, RFC 1951).
    Deflated,
}

/// Where a member's bytes lie in its package and how they are stored: all that is needed to read it again, once it has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Data {
    /// Where its stored bytes begin, in bytes from the start of the package.
    pub offset: u64,
    /// How many bytes are stored.
    pub stored_length: u64,
    /// How they are stored.
    pub method: Method,
    /// How many bytes its content has. Never more are inflated.
    pub length: u64,
    /// The CRC-32 of its content; `None` where another digest is at hand and this one was not recorded.
    pub crc32: Option<u32>,
}
