//! Packs: many small bitstreams as one object.
//!
//! A pack is an ordinary ZIP with stored members and a ResourceSync manifest, so any tool opens it and it can
//! be published as a dump package. The same members give the same bytes.
//!
//! A pack has millions of siblings, so it repeats little: members are called by short numbers, and the manifest is
//! compressed.

use std::fmt;
use std::io::{Cursor, Write};

use bytes::Bytes;
use fixity::Computed;
use jiff::Timestamp;
use model::{Location, Method, PackId, ResourceUri, SourceId};
use object_store::{ObjectStoreExt, PutMode};
use resourcesync::{Capability, Entry, Header, Metadata, Root, WriteError, Writer};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::{Key, Store, StoreError};

/// The name of the manifest in the archive (ResourceSync 1.1, section 12.1).
pub(crate) const MANIFEST: &str = "manifest.xml";

/// How hard the manifest is compressed: harder takes longer, and a byte or two less for each member.
const MANIFEST_LEVEL: i64 = 3;

/// The most that a member usually needs in directory and manifest, beside its URI, in bytes.
const ENTRY_BYTES: usize = 512;

/// Initial capacity of a pack, in bytes: some dozens of small members. Growing from nothing would copy the
/// pack each time it doubles.
const FIRST_ROOM: usize = 64 * 1024;

/// The limits of a pack. It is held in memory until it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackLimits {
    /// Bytes, the manifest's included.
    pub bytes: usize,
    /// Members, not counting the manifest.
    pub members: usize,
}

/// One bitstream to be packed.
#[derive(Debug, Clone, Copy)]
pub struct PackMember<'a> {
    /// The resource.
    pub uri: &'a ResourceUri,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their length and digests.
    pub computed: &'a Computed,
    /// The media type the server sent.
    pub media_type: Option<&'a str>,
    /// When it was last modified, if known.
    pub last_modified: Option<Timestamp>,
}

/// A pack that is being filled.
pub struct PackBuilder {
    source: SourceId,
    pack: PackId,
    limits: PackLimits,
    archive: ZipWriter<Cursor<Vec<u8>>>,
    manifest: Writer<Vec<u8>>,
    bytes: usize,
    locations: Vec<Location>,
}

/// A complete pack that is not stored yet; [`Store::put_pack`] stores it.
#[derive(Clone)]
pub struct Pack {
    key: Key,
    body: Bytes,
    locations: Vec<Location>,
}

impl Default for PackLimits {
    fn default() -> Self {
        Self { bytes: 16 * 1024 * 1024, members: 1_024 }
    }
}

impl PackLimits {
    /// Whether another bitstream fits into a pack with so many members and bytes. An empty pack takes any.
    pub(crate) fn admit(&self, members: usize, bytes: usize, member: &PackMember<'_>) -> bool {
        members == 0 || (members < self.members && bytes + member.cost() <= self.bytes)
    }
}

impl PackMember<'_> {
    /// Its estimated size in a pack, in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.bytes.len() + self.uri.as_str().len() + ENTRY_BYTES
    }

    /// Whether the digests can belong to these bytes, by their length.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.computed.length() == self.bytes.len() as u64 {
            return Ok(());
        }
        Err(StoreError::Damaged {
            key: self.uri.to_string(),
            expected: format!("{} bytes", self.computed.length()),
            computed: format!("{} bytes", self.bytes.len()),
        })
    }
}

impl PackBuilder {
    /// An empty pack with a name of its own; `at` is when collecting its bitstreams began (RS-4).
    ///
    /// # Errors
    /// Errors of the archive's or manifest's writer. Writing to memory causes none.
    pub fn new(source: SourceId, at: Timestamp, limits: PackLimits) -> Result<Self, StoreError> {
        Self::with_room(source, at, limits, FIRST_ROOM)
    }

    /// As [`PackBuilder::new`], with an initial capacity in bytes.
    pub(crate) fn with_room(
        source: SourceId,
        at: Timestamp,
        limits: PackLimits,
        room: usize,
    ) -> Result<Self, StoreError> {
        let pack = PackId::fresh();
        let header = Header {
            at: Some(at.into()),
            ..Header::new(Root::UrlSet, Some(Capability::ResourceDumpManifest))
        };
        let manifest =
            Writer::new(Vec::with_capacity(FIRST_ROOM / 4), &header).map_err(|e| failed(&source, pack, e))?;
        let archive = ZipWriter::new(Cursor::new(Vec::with_capacity(room)));
        Ok(Self { source, pack, limits, archive, manifest, bytes: 0, locations: Vec::new() })
    }

    /// Adds a bitstream and returns its number: its index in the result of [`Store::put_pack`].
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the digests cannot belong to these bytes, by their length.
    pub fn add(&mut self, member: PackMember<'_>) -> Result<usize, StoreError> {
        member.check()?;
        let number = self.locations.len();
        let name = member_name(number);
        self.describe(&member, &name)?;
        let offset = self.append(&name, member.bytes, CompressionMethod::Stored)?;
        self.locations.push(Location::Pack {
            source: self.source.clone(),
            pack: self.pack,
            offset,
            stored_length: member.computed.length(),
            method: Method::Stored,
        });
        self.bytes += member.cost();
        Ok(number)
    }

    /// Whether another bitstream fits. An empty pack takes any.
    pub fn fits(&self, member: &PackMember<'_>) -> bool {
        self.limits.admit(self.len(), self.bytes, member)
    }

    /// How many bitstreams are in it.
    pub fn len(&self) -> usize {
        self.locations.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.locations.is_empty()
    }

    /// Closes the pack.
    ///
    /// # Errors
    /// As [`PackBuilder::new`].
    pub fn finish(mut self) -> Result<Pack, StoreError> {
        let source = self.source.clone();
        let pack = self.pack;
        let empty = Writer::new(Vec::new(), &Header::new(Root::UrlSet, None));
        let empty = empty.map_err(|e| failed(&source, pack, e))?;
        let manifest = std::mem::replace(&mut self.manifest, empty);
        let manifest = manifest.finish().map_err(|e| failed(&source, pack, e))?;
        self.append(MANIFEST, &manifest, CompressionMethod::Deflated)?;
        let body = self.archive.finish().map_err(|e| failed(&source, pack, e))?.into_inner();
        Ok(Pack { key: Key::Pack { source, pack }, body: body.into(), locations: self.locations })
    }

    /// Writes the member's entry of the manifest (RS-9).
    fn describe(&mut self, member: &PackMember<'_>, name: &str) -> Result<(), StoreError> {
        let hashes: Vec<_> = member.computed.digests().iter().map(ToString::to_string).collect();
        let mut entry = Entry {
            loc: member.uri.to_string(),
            lastmod: member.last_modified.map(Into::into),
            metadata: Metadata {
                hash: Some(hashes.join(" ")),
                length: Some(member.computed.length()),
                media_type: member.media_type.map(ToOwned::to_owned),
                path: Some(format!("/{name}")),
                ..Metadata::default()
            },
            ..Entry::default()
        };
        let mut written = self.manifest.write(&entry);
        if matches!(written, Err(WriteError::NotText { .. })) {
            // A control character from a server must not spoil the whole pack: the URI as requested has none.
            entry.loc = member.uri.to_url().into();
            entry.metadata.media_type = None;
            written = self.manifest.write(&entry);
        }
        written.map_err(|e| failed(&self.source, self.pack, e))
    }

    /// Appends a member and returns where its stored bytes begin.
    fn append(&mut self, name: &str, bytes: &[u8], method: CompressionMethod) -> Result<u64, StoreError> {
        let failed = |e: zip::result::ZipError| failed(&self.source, self.pack, e);
        // The earliest time that a ZIP can express, so that equal members give equal packs.
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .compression_level((method == CompressionMethod::Deflated).then_some(MANIFEST_LEVEL))
            .last_modified_time(DateTime::default())
            .unix_permissions(0o644);
        self.archive.start_file(name, options).map_err(failed)?;
        // Behind the header that was just written.
        let offset = self.archive.get_ref().map_or(0, Cursor::position);
        self.archive.write_all(bytes).map_err(|e| failed(e.into()))?;
        Ok(offset)
    }
}

impl Pack {
    /// Its key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The location of the whole pack.
    pub(crate) fn location(&self) -> Option<Location> {
        let Key::Pack { source, pack } = self.key.clone() else { return None };
        let stored_length = self.body.len() as u64;
        Some(Location::Pack { source, pack, offset: 0, stored_length, method: Method::Stored })
    }

    /// The archive.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}

impl Store {
    /// Stores a pack by one PUT, and returns the locations of its members, by number.
    ///
    /// # Errors
    /// The error of the store; the same pack can be put again.
    pub async fn put_pack(&self, pack: &Pack) -> Result<Vec<Location>, StoreError> {
        match self.put(&pack.key, pack.body.clone().into(), PutMode::Create).await {
            Ok(()) => {}
            // No other pack has this name: an earlier attempt succeeded, and only its response was lost.
            Err(error @ StoreError::AlreadyExists { .. }) => {
                let meta = self.objects().head(&pack.key.path()).await;
                if !meta.is_ok_and(|meta| meta.size == pack.body.len() as u64) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(pack.locations.clone())
    }
}

impl fmt::Debug for PackBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, pack, bytes, .. } = self;
        write!(f, "PackBuilder({source}/{pack}: {} members, {bytes} bytes)", self.len())
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pack({}: {} members, {} bytes)", self.key, self.locations.len(), self.body.len())
    }
}

/// The name of a member in the archive: its number, in base 36. Each has it twice.
fn member_name(mut number: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]);
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().copied().map(char::from).collect()
}

fn failed(
    source: &SourceId,
    pack: PackId,
    error: impl std::error::Error + Send + Sync + 'static,
) -> StoreError {
    let key = Key::Pack { source: source.clone(), pack };
    StoreError::Other { at: key.to_string(), source: Box::new(error) }
}
