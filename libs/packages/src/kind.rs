use std::fmt;

/// The kind of a member, by the archive. Only files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic or hard link. Its target is never read.
    Link,
    /// A device, a pipe or a socket.
    Device,
}

impl Kind {
    /// The kind by the file type bits of a Unix `mode`; without any, a file.
    pub(crate) fn of_unix_mode(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o120_000 => Self::Link,
            0o040_000 => Self::Folder,
            0o010_000 | 0o020_000 | 0o060_000 | 0o140_000 => Self::Device,
            _ => Self::File,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a link",
            Self::Device => "a device, a pipe or a socket",
        })
    }
}
