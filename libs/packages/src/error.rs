//! Errors of a package, or of one of its members.

use std::fmt;
use std::io;

/// A member, and its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPosition {
    /// The member's name, without control characters and cut to a line; `None` when a member is read by its
    /// recorded offset.
    pub name: Option<String>,
    /// The offset of its header, or of its data when it is read by its recorded offset; in bytes from the
    /// start of the package (of the tar itself, if that is compressed).
    pub offset: u64,
}

impl MemberPosition {
    pub(crate) fn new(name: &[u8], offset: u64) -> Self {
        Self { name: Some(crate::name::shown(name)), offset }
    }
}

impl fmt::Display for MemberPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "the member “{name}” at byte {}", self.offset),
            None => write!(f, "the member whose data begins at byte {}", self.offset),
        }
    }
}

/// The scope of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The store: the bytes could not be read. A retry may succeed.
    Store,
    /// The whole package: its structure, and so all its members, cannot be trusted. A retry gives the same.
    Package,
    /// One member; the others are not affected. A retry gives the same.
    Member,
}

macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $name:ident $kebab:literal $scope:ident $message:literal
        { $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty),* $(,)? })+) => {
        /// Why a package, or a member of it, cannot be read: what happened, where, and what to do.
        #[derive(Debug, thiserror::Error)]
        pub enum PackageError {
            /// The bytes could not be read from the store.
            #[error("{length} bytes at byte {offset} of the package could not be read: {source}; try again")]
            Read {
                /// The start of the range.
                offset: u64,
                /// The length of the range; 0 for a stream.
                length: u64,
                /// The cause.
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

            /// Its name, for counters and records: lower case, with hyphens, and stable.
            pub fn name(&self) -> &'static str {
                match self {
                    Self::Read { .. } => "read",
                    $(Self::$name { .. } => $kebab,)+
                }
            }

            /// Its scope.
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
    /// The bytes belong to no supported archive format.
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
        /// Its length.
        length: u64,
        /// The missing part.
        what: &'static str,
    }
    /// The archive spans several files.
    MultiDisk "multi-disk" Package
    "the archive is a part of one that goes over several files ({what} at byte {offset}); the Source must offer it in one piece"
    {
        /// The evidence.
        what: &'static str,
        /// The offset.
        offset: u64,
    }
    /// A ZIP with two possible end records.
    AmbiguousEnd "ambiguous-end" Package
    "the archive has two ends, at bytes {first} and {second}, and readers would not agree on what it holds; tell the Source"
    {
        /// The offset of the first.
        first: u64,
        /// The offset of the second.
        second: u64,
    }
    /// The records at the end of a ZIP do not fit it, or each other.
    BadEnd "bad-end" Package
    "the end record at byte {offset} cannot be right: {what}; the archive is damaged, or made to mislead: tell the Source"
    {
        /// The offset of the record.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    }
    /// A record of a ZIP's central directory is malformed.
    BadDirectory "bad-directory" Package
    "the central directory is malformed at byte {offset}: {what}; the archive is damaged, or made to mislead: tell the Source"
    {
        /// The offset of the record.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    }
    /// A ZIP's directory has another number of members than its end record declares.
    WrongCount "wrong-count" Package
    "the central directory holds {found} members where its end record says {declared}; the archive is damaged: tell the Source"
    {
        /// As declared.
        declared: u64,
        /// As found.
        found: u64,
    }
    /// Two members of a ZIP share bytes, or one shares them with the directory.
    Overlap "overlap" Package
    "{place} runs to byte {end}, into {into} at byte {next}: members that share bytes are how small archives inflate without end; tell the Source"
    {
        /// The member that is too long.
        place: MemberPosition,
        /// Its end.
        end: u64,
        /// The part that it overlaps.
        into: String,
        /// The start of that part.
        next: u64,
    }
    /// A member's own header contradicts the directory.
    HeaderContradicts "header-contradicts" Package
    "the header of {place} says {field} {header} where the directory says {directory}: readers would not agree on what it is; tell the Source"
    {
        /// The member.
        place: MemberPosition,
        /// The field that differs.
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
        place: MemberPosition,
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
    /// More inflated bytes than the limit for a package.
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
        /// Inflated bytes so far.
        inflated: u64,
        /// The limit.
        limit: u64,
    }
    /// A header of a tar is malformed, or contradicts its extension.
    BadHeader "bad-header" Package
    "the tar header at byte {offset} cannot be right: {what}; the archive is damaged, or made to mislead: tell the Source"
    {
        /// The offset of the header, in bytes from the start of the tar.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    }
    /// The extensions of a tar member are longer than the limit.
    ExtensionTooLarge "extension-too-large" Package
    "the tar records at byte {offset}, which extend the next header, have {bytes} bytes, and the limit is {limit}; tell the Source"
    {
        /// The offset of the record, in bytes from the start of the tar.
        offset: u64,
        /// As declared.
        bytes: u64,
        /// The limit.
        limit: u64,
    }
    /// A tar continues behind its end.
    TrailingBytes "trailing-bytes" Package
    "the tar ends at byte {offset}, and more follows, which would go unread; the Source must offer one archive"
    {
        /// The offset of its end, in bytes from the start of the tar.
        offset: u64,
    }
    /// Compressed bytes that cannot be inflated, or fail their check.
    BadCompression "bad-compression" Package
    "the {format} around the tar is damaged after byte {offset} of the tar: {why}; fetch it again, or tell the Source"
    {
        /// The compression format.
        format: &'static str,
        /// Bytes of the tar that were inflated before.
        offset: u64,
        /// The decoder's message.
        why: String,
    }
    /// A decoder that needs more memory than the limit.
    DecoderTooLarge "decoder-too-large" Package
    "to inflate the {format} around the tar takes more than {limit} bytes of memory; raise the limit if this Source is to be trusted"
    {
        /// The compression format.
        format: &'static str,
        /// The limit.
        limit: u64,
    }
    /// No manifest.
    NoManifest "no-manifest" Package
    "there is no manifest.xml among the {members} members; the package is no ResourceSync dump: tell the Source"
    {
        /// How many members were checked.
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
        place: MemberPosition,
    }
    /// An unsupported compression method.
    UnknownMethod "unknown-method" Member
    "{place} is compressed by method {method}; only stored (0) and deflate (8) are read: tell the Source"
    {
        /// The member.
        place: MemberPosition,
        /// The method's number (APPNOTE 4.4.5).
        method: u16,
    }
    /// A name that several members have.
    DuplicateName "duplicate-name" Member
    "{place} has the name of another member, and nobody knows which is meant; tell the Source"
    {
        /// The member.
        place: MemberPosition,
    }
    /// A name longer than the limit.
    NameTooLong "name-too-long" Member
    "the name of {place} has {bytes} bytes, and the limit is {limit}; raise it if this Source is to be trusted"
    {
        /// The member.
        place: MemberPosition,
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u64,
    }
    /// A folder.
    Folder "folder" Member
    "{place} is a folder, not a file"
    {
        /// The member.
        place: MemberPosition,
    }
    /// A link.
    Link "link" Member
    "{place} is a link; links are not followed: the Source must put the file itself into the package"
    {
        /// The member.
        place: MemberPosition,
    }
    /// A device, a pipe or a socket.
    Device "device" Member
    "{place} is a device, a pipe or a socket, not a file; tell the Source"
    {
        /// The member.
        place: MemberPosition,
    }
    /// A sparse file.
    Sparse "sparse" Member
    "{place} is a sparse file, whose holes are not read; the Source must put it into the package whole"
    {
        /// The member.
        place: MemberPosition,
    }
    /// An unknown type of tar member.
    UnknownType "unknown-type" Member
    "{place} is of the tar type {typeflag:?}, which is not read; tell the Source"
    {
        /// The member.
        place: MemberPosition,
        /// The type.
        typeflag: char,
    }
    /// More inflated bytes than the limit for a member.
    MemberTooLarge "member-too-large" Member
    "{place} has {bytes} bytes, and the limit is {limit}; raise it if this Source is to be trusted"
    {
        /// The member.
        place: MemberPosition,
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
        place: MemberPosition,
        /// Bytes as stored.
        stored: u64,
        /// Bytes as declared.
        inflated: u64,
        /// The limit.
        limit: u64,
    }
    /// Bytes with another CRC-32 than declared.
    WrongCrc "wrong-crc" Member
    "{place} has the CRC-32 {computed:08x}, not {declared:08x} as declared; it is damaged: fetch the package again, or tell the Source"
    {
        /// The member.
        place: MemberPosition,
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
        place: MemberPosition,
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
        place: MemberPosition,
        /// Bytes that were inflated before.
        inflated: u64,
        /// What is wrong.
        why: String,
    }
}

impl PackageError {
    /// The error inside an I/O error of this crate's [`AsyncRead`](tokio::io::AsyncRead); any other becomes
    /// [`Read`](Self::Read).
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
