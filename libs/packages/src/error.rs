//! Why a package, or a member of it, is not read.

use std::fmt;
use std::io;

/// Which member is spoken of, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The member's name, without control characters and cut to a line; `None` when a member is read by its recorded place.
    pub name: Option<String>,
    /// Where its header begins, or its data when it is read by its recorded place; in bytes from the start of the package (of
    /// the tar itself, where that is compressed).
    pub offset: u64,
}

impl Place {
    pub(crate) fn new(name: &[u8], offset: u64) -> Self {
        Self { name: Some(crate::name::shown(name)), offset }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "the member “{name}” at byte {}", self.offset),
            None => write!(f, "the member whose data begins at byte {}", self.offset),
        }
    }
}

/// What an error is an error of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The store: the bytes could not be had. Worth another try.
    Store,
    /// The whole package: its structure cannot be trusted, so no member of it can. Another try gives the same.
    Package,
    /// One member. The others are not touched by it. Another try gives the same.
    Member,
}

macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $name:ident $kebab:literal $scope:ident $message:literal
        { $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty),* $(,)? })+) => {
        /// Why a package, or a member of it, is not read: what happened, where, and what to do.
        #[derive(Debug, thiserror::Error)]
        pub enum PackageError {
            /// The bytes could not be had from the store.
            #[error("{length} bytes at byte {offset} of the package could not be read: {source}; try again")]
            Read {
                /// Where the range begins.
                offset: u64,
                /// The length of the range; 0 where a stream is read.
                length: u64,
                /// Why.
                source: io::Error,
            },
            $(
                $(#[doc = $doc])+
                #[error($message)]
                $name { $($(#[doc = $field_doc])+ $field: $type),* },
            )+
        }

        impl PackageError {
            /// The names of all of them.
            pub const NAMES: &[&str] = &["read", $($kebab),+];

            /// Its name, for counters and records: lower case, with hyphens, never changed once given.
            pub fn name(&self) -> &'static str {
                match self {
                    Self::Read { .. } => "read",
                    $(Self::$name { .. } => $kebab,)+
                }
            }

            /// What it is an error of.
            pub fn scope(&self) -> Scope {
                match self {
                    Self::Read { .. } => Scope::Store,
                    $(Self::$name { .. } => Scope::$scope,)+
                }
            }
        }
    };
}

errors! {
    /// The bytes are those of no archive that is read here.
    NotAnArchive "not-an-archive" Package
    "this is no ZIP and no tar, plain or in gzip, xz or zstd, but {looks_like}; see what the Source serves under this URL"
    {
        /// What it looks like.
        looks_like: &'static str,
    }
    /// The package ends too early.
    Truncated "truncated" Package
    "the package ends at byte {length}, before {what}; it was cut off: fetch it again, or tell the Source"
    {
        /// How long it is.
        length: u64,
        /// What is missing.
        what: &'static str,
    }
    /// The archive goes over several files.
    MultiDisk "multi-disk" Package
    "the archive is a part of one that goes over several files ({what} at byte {offset}); the Source must offer it in one piece"
    {
        /// What tells so.
        what: &'static str,
        /// Where.
        offset: u64,
    }
    /// A ZIP has two end records, either of which may be meant.
    AmbiguousEnd "ambiguous-end" Package
    "the archive has two ends, at bytes {first} and {second}, and readers would not agree on what it holds; tell the Source"
    {
        /// Where the one lies.
        first: u64,
        /// Where the other lies.
        second: u64,
    }
    /// The records at the end of a ZIP do not fit it, or each other.
    BadEnd "bad-end" Package
    "the end record at byte {offset} cannot be right: {what}; the archive is damaged, or made to mislead: tell the Source"
    {
        /// Where the record lies.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    }
    /// A record of a ZIP's central directory is malformed.
    BadDirectory "bad-directory" Package
    "the central directory is malformed at byte {offset}: {what}; the archive is damaged, or made to mislead: tell the Source"
    {
        /// Where the record lies.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    }
    /// A ZIP's directory holds another number of members than its end record says.
    WrongCount "wrong-count" Package
    "the central directory holds {found} members where its end record says {declared}; the archive is damaged: tell the Source"
    {
        /// As the end record says.
        declared: u64,
        /// As found.
        found: u64,
    }
    /// Two members of a ZIP share bytes, or one shares them with the directory.
    Overlap "overlap" Package
    "{place} runs to byte {end}, into {into} at byte {next}: members that share bytes are how small archives inflate without end; tell the Source"
    {
        /// The member that runs too far.
        place: Place,
        /// Where it ends.
        end: u64,
        /// What it runs into.
        into: String,
        /// Where that begins.
        next: u64,
    }
    /// What stands before a member contradicts the directory.
    HeaderContradicts "header-contradicts" Package
    "the header of {place} says {field} {header} where the directory says {directory}: readers would not agree on what it is; tell the Source"
    {
        /// The member.
        place: Place,
        /// What they differ in.
        field: &'static str,
        /// As in the member's own header.
        header: String,
        /// As in the directory.
        directory: String,
    }
    /// There is no header where the directory says one is.
    NoHeader "no-header" Package
    "the directory says that {place} has its header there, but there is none; the archive is damaged: tell the Source"
    {
        /// The member.
        place: Place,
    }
    /// More members than the limit.
    TooManyMembers "too-many-members" Package
    "the package holds {members} members or more, and the limit is {limit}; raise it if this Source is to be trusted"
    {
        /// As declared, or as counted so far.
        members: u64,
        /// The limit.
        limit: u64,
    }
    /// A directory longer than the limit.
    DirectoryTooLarge "directory-too-large" Package
    "the central directory has {bytes} bytes, and the limit is {limit}; raise it if this Source is to be trusted"
    {
        /// As declared.
        bytes: u64,
        /// The limit.
        limit: u64,
    }
    /// More bytes once inflated than the limit for a package.
    TooManyBytes "too-many-bytes" Package
    "the package inflates to {bytes} bytes or more, and the limit is {limit}; raise it if this Source is to be trusted"
    {
        /// As declared, or as inflated so far.
        bytes: u64,
        /// The limit.
        limit: u64,
    }
    /// A compressed tar inflates too much.
    PackageTooDense "package-too-dense" Package
    "{stored} bytes of the package inflate to {inflated} or more, which is over {limit} times as much; raise the limit if this Source is to be trusted"
    {
        /// Compressed bytes read so far.
        stored: u64,
        /// What they have become so far.
        inflated: u64,
        /// The limit.
        limit: u64,
    }
    /// A header of a tar is malformed, or contradicts what extends it.
    BadHeader "bad-header" Package
    "the tar header at byte {offset} cannot be right: {what}; the archive is damaged, or made to mislead: tell the Source"
    {
        /// Where the header begins, in bytes from the start of the tar.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    }
    /// What a tar says of its next member is longer than the limit.
    ExtensionTooLarge "extension-too-large" Package
    "the tar records at byte {offset}, which extend the next header, have {bytes} bytes, and the limit is {limit}; tell the Source"
    {
        /// Where the record begins, in bytes from the start of the tar.
        offset: u64,
        /// As declared.
        bytes: u64,
        /// The limit.
        limit: u64,
    }
    /// A tar goes on after its end.
    TrailingBytes "trailing-bytes" Package
    "the tar ends at byte {offset}, and more follows, which would go unread; the Source must offer one archive"
    {
        /// Where it ends, in bytes from the start of the tar.
        offset: u64,
    }
    /// Compressed bytes that cannot be inflated, or fail their check.
    BadCompression "bad-compression" Package
    "the {format} around the tar is damaged after byte {offset} of the tar: {why}; fetch it again, or tell the Source"
    {
        /// What it is compressed with.
        format: &'static str,
        /// How much of the tar had come, in bytes.
        offset: u64,
        /// What the decoder says.
        why: String,
    }
    /// A decoder that would take more memory than the limit.
    DecoderTooLarge "decoder-too-large" Package
    "to inflate the {format} around the tar takes more than {limit} bytes of memory; raise the limit if this Source is to be trusted"
    {
        /// What it is compressed with.
        format: &'static str,
        /// The limit.
        limit: u64,
    }
    /// No manifest.
    NoManifest "no-manifest" Package
    "there is no manifest.xml among the {members} members; the package is no ResourceSync dump: tell the Source"
    {
        /// How many were looked at.
        members: u64,
    }
    /// Several members that may be the manifest.
    AmbiguousManifest "ambiguous-manifest" Package
    "there is no manifest.xml at the top, and both “{first}” and “{second}” may be meant; tell the Source"
    {
        /// One of them.
        first: String,
        /// Another.
        second: String,
    }
    /// A member that is encrypted.
    Encrypted "encrypted" Member
    "{place} is encrypted, which dumps must not be; tell the Source"
    {
        /// The member.
        place: Place,
    }
    /// A compression method that is not read.
    UnknownMethod "unknown-method" Member
    "{place} is compressed by method {method}; only stored (0) and deflate (8) are read: tell the Source"
    {
        /// The member.
        place: Place,
        /// The method's number (APPNOTE 4.4.5).
        method: u16,
    }
    /// A name that several members have.
    DuplicateName "duplicate-name" Member
    "{place} has the name of another member, and nobody knows which is meant; tell the Source"
    {
        /// The member.
        place: Place,
    }
    /// A name longer than the limit.
    NameTooLong "name-too-long" Member
    "the name of {place} has {bytes} bytes, and the limit is {limit}; raise it if this Source is to be trusted"
    {
        /// The member.
        place: Place,
        /// How long it is.
        bytes: u64,
        /// The limit.
        limit: u64,
    }
    /// A folder.
    Folder "folder" Member
    "{place} is a folder, not a file"
    {
        /// The member.
        place: Place,
    }
    /// A link.
    Link "link" Member
    "{place} is a link; links are not followed: the Source must put the file itself into the package"
    {
        /// The member.
        place: Place,
    }
    /// A device, a pipe or a socket.
    Device "device" Member
    "{place} is a device, a pipe or a socket, not a file; tell the Source"
    {
        /// The member.
        place: Place,
    }
    /// A sparse file.
    Sparse "sparse" Member
    "{place} is a sparse file, whose holes are not read; the Source must put it into the package whole"
    {
        /// The member.
        place: Place,
    }
    /// A type of tar member that nobody knows.
    UnknownType "unknown-type" Member
    "{place} is of the tar type {typeflag:?}, which is not read; tell the Source"
    {
        /// The member.
        place: Place,
        /// The type.
        typeflag: char,
    }
    /// More bytes once inflated than the limit for a member.
    MemberTooLarge "member-too-large" Member
    "{place} has {bytes} bytes, and the limit is {limit}; raise it if this Source is to be trusted"
    {
        /// The member.
        place: Place,
        /// As declared.
        bytes: u64,
        /// The limit.
        limit: u64,
    }
    /// A member that inflates too much.
    MemberTooDense "member-too-dense" Member
    "{place} inflates from {stored} bytes to {inflated}, which is over {limit} times as much; raise the limit if this Source is to be trusted"
    {
        /// The member.
        place: Place,
        /// Bytes as stored.
        stored: u64,
        /// Bytes as declared.
        inflated: u64,
        /// The limit.
        limit: u64,
    }
    /// Bytes that have another CRC-32 than declared.
    WrongCrc "wrong-crc" Member
    "{place} has the CRC-32 {computed:08x}, not {declared:08x} as declared; it is damaged: fetch the package again, or tell the Source"
    {
        /// The member.
        place: Place,
        /// As declared.
        declared: u32,
        /// As computed.
        computed: u32,
    }
    /// More or fewer bytes than declared.
    WrongSize "wrong-size" Member
    "{place} {found}, not {declared} bytes as declared; it is damaged, or made to mislead: tell the Source"
    {
        /// The member.
        place: Place,
        /// As declared.
        declared: u64,
        /// What was found instead.
        found: String,
    }
    /// Bytes that are no deflate stream.
    BadDeflate "bad-deflate" Member
    "{place} cannot be inflated after {inflated} bytes: {why}; it is damaged: fetch the package again, or tell the Source"
    {
        /// The member.
        place: Place,
        /// How much had come.
        inflated: u64,
        /// What is wrong.
        why: String,
    }
}

impl PackageError {
    /// The error inside one that came through an [`AsyncRead`](tokio::io::AsyncRead) of this crate; any other is [`Read`](Self::Read).
    pub fn from_io(error: io::Error) -> Self {
        error.downcast::<Self>().unwrap_or_else(|source| Self::Read { offset: 0, length: 0, source })
    }
}

impl From<PackageError> for io::Error {
    fn from(error: PackageError) -> Self {
        match error {
            PackageError::Read { source, .. } => source,
            other => Self::new(io::ErrorKind::InvalidData, other),
        }
    }
}
