//! The members of a tar, one after the other.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io;

use bytes::Bytes;
use futures::stream;
use tokio::io::{AsyncBufRead, AsyncRead};

use super::extension::{Extension, check_global};
use super::header::{BLOCK, Header};
use super::inflated::Inflated;
use crate::range::reader_of;
use crate::{Compression, Limits, MemberPosition, NameOddity, PackageError, Packaging, name};

/// The next item of a tar. Folders are skipped: they have no content.
#[derive(Debug)]
pub enum Item {
    /// A file, whose content can be read with [`Entries::chunk`].
    Member(Member),
    /// A member that cannot be read, with an error of this member only. [`Entries::next`] continues behind
    /// it.
    Refused(PackageError),
}

/// A file in a tar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number, counted from 0 over all members of the tar.
    pub index: u64,
    /// Its name as written. [`name`](Self::name) is the same as text.
    pub name_bytes: Vec<u8>,
    /// Bytes of its content.
    pub size: u64,
    /// The offset of its header, from the start of the tar.
    pub header_offset: u64,
}

impl Member {
    /// Its name as text: UTF-8, or code page 437 if it is not UTF-8.
    pub fn name(&self) -> Cow<'_, str> {
        name::text(&self.name_bytes)
    }

    /// The oddities of its name.
    pub fn name_oddities(&self) -> Vec<NameOddity> {
        NameOddity::of(&self.name_bytes)
    }

    /// The member's place, for messages.
    pub fn place(&self) -> MemberPosition {
        MemberPosition::new(&self.name_bytes, self.header_offset)
    }
}

/// Reads a tar from a stream, plain or compressed, whatever its name or media type is.
///
/// It holds 64 KiB of content, a header with its extensions, the decoder's memory under
/// [`Limits::decoder_bytes`], and eight bytes per name, to recognize it again. The tar is valid only when
/// [`next`](Self::next) has returned `None`. By then the end marks were read, with nothing but zeros behind
/// them, and the checksums of the compression were compared.
pub struct Entries<'a> {
    inflated: Inflated<'a>,
    limits: Limits,
    /// Unread content of the current member, and whether a caller may read it.
    left: u64,
    readable: bool,
    /// The padding of the current member's last block.
    padding: u64,
    members: u64,
    /// Hashes of the names of all files so far. The key is random, so that a Source cannot construct a
    /// collision.
    names: HashSet<u64>,
    key: RandomState,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Going,
    Ended,
    Failed,
}

impl<'a> Entries<'a> {
    /// Starts to read `source`, which is the whole package; [`range_reader`](crate::range_reader) makes one
    /// of a [`ReadAt`](crate::ReadAt).
    ///
    /// # Errors
    /// [`PackageError::NotAnArchive`], [`PackageError::Truncated`] when it is empty, [`PackageError::Read`].
    pub async fn open(source: impl AsyncRead + Send + 'a, limits: &Limits) -> Result<Self, PackageError> {
        Ok(Self {
            inflated: Inflated::open(source, limits).await?,
            limits: limits.clone(),
            left: 0,
            readable: false,
            padding: 0,
            members: 0,
            names: HashSet::new(),
            key: RandomState::new(),
            state: State::Going,
        })
    }

    /// The kind of the package.
    pub fn packaging(&self) -> Packaging {
        Packaging::Tar(self.inflated.compression)
    }

    /// The next file, or the next refused member; unread content of the previous one is skipped. `None` at
    /// the end of a valid tar.
    ///
    /// # Errors
    /// Those of the whole package, after which nothing more can be read of it; and [`PackageError::Read`],
    /// after which it has to be read again from its start.
    pub async fn next(&mut self) -> Result<Option<Item>, PackageError> {
        match self.state {
            State::Going => {}
            State::Ended => return Ok(None),
            State::Failed => return Err(failed_before()),
        }
        let next = self.advance().await;
        match &next {
            Ok(Some(_)) => {}
            Ok(None) => self.state = State::Ended,
            Err(_) => self.state = State::Failed,
        }
        next
    }

    /// More content of the member that [`next`](Self::next) returned last; `None` at its end, or if it has
    /// none.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, PackageError> {
        if self.state == State::Failed {
            return Err(failed_before());
        }
        if self.left == 0 || !self.readable {
            return Ok(None);
        }
        let chunk = match self.inflated.some(self.left).await {
            Ok(Some(chunk)) => Ok(chunk),
            Ok(None) => Err(self.inflated.truncated("the end of a member")),
            Err(error) => Err(error),
        };
        let chunk = chunk.inspect_err(|_| self.state = State::Failed)?;
        self.left -= chunk.len() as u64;
        Ok(Some(chunk))
    }

    /// The same content as an [`AsyncRead`]; [`PackageError::from_io`] finds the error inside the errors that
    /// it returns.
    pub fn reader(&mut self) -> impl AsyncBufRead + Send + Unpin {
        reader_of(stream::try_unfold(self, |entries| async move {
            let chunk = entries.chunk().await.map_err(io::Error::from)?;
            Ok(chunk.map(|chunk| (chunk, entries)))
        }))
    }

    /// The rest of the member's content in memory: for manifests and tests.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk); and [`PackageError::MemberTooLarge`] for more than `limit` bytes.
    pub async fn to_end(&mut self, limit: u64) -> Result<Vec<u8>, PackageError> {
        if self.readable && self.left > limit {
            let place = MemberPosition { name: None, offset: self.inflated.position };
            return Err(PackageError::MemberTooLarge { place, bytes: self.left, limit });
        }
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    async fn advance(&mut self) -> Result<Option<Item>, PackageError> {
        let mut extension = Extension::default();
        loop {
            self.inflated.skip(self.left).await?;
            self.left = 0;
            self.inflated.skip(self.padding).await?;
            self.padding = 0;
            let offset = self.inflated.position;
            let bad = |what| PackageError::BadHeader { offset, what };
            let Some(block) = self.inflated.block().await? else {
                return Err(self.inflated.truncated("the blocks of zeros that end a tar"));
            };
            if block == [0; BLOCK] {
                if !extension.is_empty() {
                    return Err(bad("the header before it extends no member"));
                }
                return self.end(offset).await.map(|()| None);
            }
            let header = Header::parse(&block).map_err(|what| self.no_header(offset, what))?;
            let taken = match header.typeflag {
                typeflag @ (b'x' | b'X' | b'L' | b'K') => {
                    let data = self.extension(&header, offset, &mut extension.bytes).await?;
                    match typeflag {
                        b'L' => extension.long_name(&data),
                        // The targets of links are ignored.
                        b'K' => Ok(()),
                        _ => extension.records(&data),
                    }
                }
                b'g' => check_global(&self.extension(&header, offset, &mut 0).await?),
                _ => match self.member(&header, &extension, offset).await? {
                    Some(item) => return Ok(Some(item)),
                    None => {
                        extension = Extension::default();
                        Ok(())
                    }
                },
            };
            taken.map_err(bad)?;
        }
    }

    /// The content of an extension header.
    async fn extension(
        &mut self,
        header: &Header,
        offset: u64,
        bytes: &mut u64,
    ) -> Result<Vec<u8>, PackageError> {
        *bytes = bytes.saturating_add(header.size);
        let limit = self.limits.extension_bytes;
        if *bytes > limit {
            return Err(PackageError::ExtensionTooLarge { offset, bytes: *bytes, limit });
        }
        let mut data = Vec::new();
        while (data.len() as u64) < header.size {
            let Some(chunk) = self.inflated.some(header.size - data.len() as u64).await? else {
                return Err(self.inflated.truncated("the end of a header"));
            };
            data.extend_from_slice(&chunk);
        }
        self.padding = padding(header.size);
        Ok(data)
    }

    /// The item of a header that is no extension; `None` for one to skip.
    async fn member(
        &mut self,
        header: &Header,
        extension: &Extension,
        offset: u64,
    ) -> Result<Option<Item>, PackageError> {
        let bad = |what| PackageError::BadHeader { offset, what };
        let name_bytes = extension.name(header).map_err(bad)?;
        // The size of a folder is the space that it may use (POSIX.1-2017, ustar), not that of any content.
        let size = if header.typeflag == b'5' { 0 } else { extension.size(header).map_err(bad)? };
        let index = self.members;
        self.members += 1;
        if self.members > self.limits.members {
            let limit = self.limits.members;
            return Err(PackageError::TooManyMembers { members: self.members, limit });
        }
        let mut map_follows = header.map_follows;
        while map_follows {
            let block = self.inflated.block().await?;
            let block = block.ok_or_else(|| self.inflated.truncated("the map of a sparse file"))?;
            map_follows = block[504] != 0;
        }
        self.left = size;
        self.padding = padding(size);
        self.readable = false;
        let place = || MemberPosition::new(&name_bytes, offset);
        // If these have content, some readers skip it and others look for the next header in it.
        if matches!(header.typeflag, b'1'..=b'4' | b'6') && size > 0 {
            return Err(bad("a link or device has content"));
        }
        let refused = match header.typeflag {
            b'5' | b'D' | b'V' => return Ok(None),
            b'0' | 0 if name_bytes.ends_with(b"/") && size == 0 => return Ok(None),
            b'1' | b'2' => PackageError::Link { place: place() },
            b'3' | b'4' | b'6' => PackageError::Device { place: place() },
            b'M' => return Err(PackageError::MultiDisk { what: "a continued member", offset }),
            b'S' => PackageError::Sparse { place: place() },
            b'0' | 0 | b'7' => {
                let member = Member { index, name_bytes, size, header_offset: offset };
                return Ok(Some(self.file(member, extension)));
            }
            typeflag => PackageError::UnknownType { place: place(), typeflag: typeflag.into() },
        };
        Ok(Some(Item::Refused(refused)))
    }

    fn file(&mut self, member: Member, extension: &Extension) -> Item {
        let place = member.place();
        let limits = &self.limits;
        let name_bytes = member.name_bytes.len();
        Item::Refused(if extension.sparse {
            PackageError::Sparse { place }
        } else if name_bytes > limits.name_bytes {
            PackageError::NameTooLong { place, bytes: name_bytes as u64, limit: limits.name_bytes as u64 }
        } else if member.size > limits.member_bytes {
            PackageError::MemberTooLarge { place, bytes: member.size, limit: limits.member_bytes }
        } else if !self.names.insert(self.key.hash_one(&member.name_bytes)) {
            PackageError::DuplicateName { place }
        } else {
            self.readable = true;
            return Item::Member(member);
        })
    }

    /// Reads what follows the end, up to the end of the compression, so that its checksums are compared.
    async fn end(&mut self, offset: u64) -> Result<(), PackageError> {
        while let Some(chunk) = self.inflated.some(u64::MAX).await? {
            if chunk.iter().any(|&byte| byte != 0) {
                return Err(PackageError::TrailingBytes { offset });
            }
        }
        Ok(())
    }

    /// If the first header of the decompressed data is invalid, it is no tar.
    fn no_header(&self, offset: u64, what: &'static str) -> PackageError {
        let looks_like = match self.inflated.compression {
            Compression::Gzip => "something else in gzip",
            Compression::Xz => "something else in xz",
            Compression::Zstd => "something else in zstd",
            Compression::Plain => return PackageError::BadHeader { offset, what },
        };
        match offset {
            0 => PackageError::NotAnArchive { looks_like },
            _ => PackageError::BadHeader { offset, what },
        }
    }
}

fn padding(size: u64) -> u64 {
    (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64
}

fn failed_before() -> PackageError {
    let source = io::Error::other("the reading has failed before");
    PackageError::Read { offset: 0, length: 0, source }
}
