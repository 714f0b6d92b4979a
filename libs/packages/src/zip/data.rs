/// The compression method of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Uncompressed (method 0).
    Stored,
    /// Deflated (method 8, RFC 1951).
    Deflated,
}

/// Location and method of a member's bytes in its package: enough to read it again, once it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Data {
    /// The offset of its stored bytes, from the start of the package.
    pub offset: u64,
    /// The stored length in bytes.
    pub stored_length: u64,
    /// The compression method.
    pub method: Method,
    /// The length of its content. Never more bytes are returned.
    pub length: u64,
    /// The CRC-32 of its content; `None` if another digest is available and this one was not recorded.
    pub crc32: Option<u32>,
}
