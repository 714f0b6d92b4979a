//! Bitstreams that are objects of their own, under the digest of their content.

use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use fixity::Sha256;
use fs_err as fs;
use jiff::Timestamp;
use model::{Location, Method, PackageId, SourceId, Span};
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectStore, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, WriteMultipart,
};

use crate::backend::Local;
use crate::error::{AtFile, AtObject};
use crate::files::{blocking, create_folder_of, flush_folder};
use crate::spool::Spooled;
use crate::{Key, Store, StoreError};

/// The smallest part of a multipart upload; a body up to this size is one request.
const PART_BYTES: u64 = 8 * 1024 * 1024;
/// Parts uploaded concurrently. An upload holds at most this many parts and one that is being read.
const PARTS_IN_FLIGHT: usize = 2;
/// S3 takes at most 10,000 parts.
const MOST_PARTS: u64 = 9_000;

/// The body of a bitstream that is not stored yet: on the disk or in memory.
#[derive(Debug)]
pub enum NewBitstream {
    /// A spooled body.
    Spooled(Spooled),
    /// A digest, and the bytes that have it.
    Memory(Sha256, Bytes),
}

impl From<Spooled> for NewBitstream {
    fn from(spooled: Spooled) -> Self {
        Self::Spooled(spooled)
    }
}

impl NewBitstream {
    fn sha256(&self) -> Sha256 {
        match self {
            Self::Spooled(spooled) => spooled.computed().sha256(),
            Self::Memory(sha256, _) => *sha256,
        }
    }

    fn length(&self) -> u64 {
        match self {
            Self::Spooled(spooled) => spooled.computed().length(),
            Self::Memory(_, bytes) => bytes.len() as u64,
        }
    }
}

impl Store {
    /// Stores a body as an object under its digest. The retention of an object that already exists starts
    /// again, so that gc does not remove it.
    ///
    /// # Errors
    /// The error of the store; [`StoreError::Busy`] when the object was removed at this very moment. The same
    /// content can always be put again.
    pub async fn put_bitstream(&self, body: impl Into<NewBitstream>) -> Result<Location, StoreError> {
        let body = body.into();
        let key = Key::Bitstream(body.sha256());
        let found = self.head_if_there(&key).await?;
        let is_whole = found.as_ref().is_some_and(|meta| meta.size == body.length());
        if is_whole && self.touch(&key).await? {
            return self.settle_put(body.sha256(), body.length(), true).await;
        }
        self.place(body, found.is_some()).await
    }

    /// As [`Store::put_bitstream`], but overwrites an existing object: one of the right name and length may
    /// be damaged.
    ///
    /// # Errors
    /// As [`Store::put_bitstream`].
    pub async fn put_bitstream_anew(&self, body: impl Into<NewBitstream>) -> Result<Location, StoreError> {
        let body = body.into();
        self.place(body, true).await
    }

    /// Writes the object of a body.
    async fn place(&self, body: NewBitstream, was_there: bool) -> Result<Location, StoreError> {
        let sha256 = body.sha256();
        let length = body.length();
        let key = Key::Bitstream(sha256);
        match body {
            NewBitstream::Memory(_, bytes) => self.put(&key, bytes.into(), PutMode::Overwrite).await?,
            NewBitstream::Spooled(spooled) => self.put_spooled(&key, spooled).await?,
        }
        self.settle_put(sha256, length, was_there).await
    }

    /// Stores a spooled body next to a Source's packages, under a name that was never used before: the index
    /// of a package.
    ///
    /// # Errors
    /// As [`Store::put_bitstream`].
    pub async fn put_beside_packages(
        &self,
        source: &SourceId,
        package: PackageId,
        spooled: Spooled,
    ) -> Result<(), StoreError> {
        self.put_spooled(&Key::Package { source: source.clone(), package }, spooled).await
    }

    /// Returns the length of an object next to the packages and its last `bytes` bytes, or all of them if it
    /// has fewer. None when there is no such object. The bytes are held in memory, so the caller bounds their
    /// number.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn tail_beside_packages(
        &self,
        source: &SourceId,
        package: PackageId,
        bytes: u64,
    ) -> Result<Option<(u64, Bytes)>, StoreError> {
        let key = Key::Package { source: source.clone(), package };
        let failed = |error| StoreError::of_object(self.root(), &key, error);
        let options = GetOptions::new().with_range(Some(GetRange::Suffix(bytes)));
        let result = self.objects().get_opts(&key.path(), options).await;
        let Some(result) = self.if_there(&key, result)? else { return Ok(None) };
        let length = result.meta.size;
        Ok(Some((length, result.bytes().await.map_err(failed)?)))
    }

    /// Removes the object of this name that is stored next to a Source's packages, if it exists. Used for
    /// indexes that are no longer needed.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn remove_beside_packages(
        &self,
        source: &SourceId,
        package: PackageId,
    ) -> Result<(), StoreError> {
        self.remove(&Key::Package { source: source.clone(), package }).await
    }

    /// Stores a spooled body under this key.
    async fn put_spooled(&self, key: &Key, spooled: Spooled) -> Result<(), StoreError> {
        match self.on_disk() {
            Some(local) => self.adopt(local, key, spooled).await,
            None => {
                let length = spooled.computed().length();
                self.upload(key, spooled.file, length).await
            }
        }
    }

    /// Restarts an object's retention without writing its bytes, where the store can. Returns whether it did.
    async fn touch(&self, key: &Key) -> Result<bool, StoreError> {
        // S3 cannot: there the same bytes are written again.
        let Some(local) = self.on_disk() else { return Ok(false) };
        let path = local.file(&key.path())?;
        let touched = move || {
            let file = fs::OpenOptions::new().write(true).open(&path);
            let touched = file.and_then(|file| file.file().set_modified(Timestamp::now().into()));
            match touched {
                Ok(()) => Ok(true),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
                Err(e) => Err(StoreError::of_file("touch", &path, e)),
            }
        };
        blocking("touch a bitstream", touched).await
    }

    /// Ends a put: afterwards the object is safe from a sweep that is under way.
    async fn settle_put(&self, sha256: Sha256, length: u64, was_there: bool) -> Result<Location, StoreError> {
        let location = Location::Object { sha256 };
        let swept = self.outwait_sweep().await?;
        if (swept || was_there) && !self.exists(&location, length).await? {
            return Err(StoreError::Busy { key: Key::of(&location).to_string() });
        }
        Ok(location)
    }

    /// One PUT.
    pub(crate) async fn put(&self, key: &Key, body: PutPayload, mode: PutMode) -> Result<(), StoreError> {
        let options = PutOptions { mode, attributes: self.attributes(key), ..Default::default() };
        let result = self.objects().put_opts(&key.path(), body, options).await;
        result.map(drop).at_object(self.root(), key)
    }

    /// Renames the spool file to the object's place, so a local store writes the bytes once.
    async fn adopt(&self, local: &Local, key: &Key, spooled: Spooled) -> Result<(), StoreError> {
        let to = local.file(&key.path())?;
        let fsync = local.fsync;
        let length = spooled.computed().length();
        let moved = blocking("store a bitstream", move || adopt_file(spooled, &to, fsync)).await;
        match moved {
            Ok(None) => {
                self.board().succeeded(true);
                Ok(())
            }
            Ok(Some(spooled)) => self.upload(key, spooled.file, length).await,
            Err(error) => {
                self.board().failed_with(&error);
                Err(error)
            }
        }
    }

    async fn upload(&self, key: &Key, file: tempfile::NamedTempFile, length: u64) -> Result<(), StoreError> {
        let part = PART_BYTES.max(length.div_ceil(MOST_PARTS));
        let mut parts = Parts { file: Some(file), part };
        if length <= part {
            return self.put(key, parts.next().await?.unwrap_or_default().into(), PutMode::Overwrite).await;
        }
        let failed = |e| StoreError::of_object(self.root(), key, e);
        let options = PutMultipartOptions::from(self.attributes(key));
        let upload = self.objects().put_multipart_opts(&key.path(), options).await.map_err(failed)?;
        // A part never exceeds the limit of a `usize` where an upload of that many bytes is possible at all.
        let chunk = usize::try_from(part).unwrap_or(usize::MAX);
        let mut upload = WriteMultipart::new_with_chunk_size(upload, chunk);
        loop {
            let step = match parts.next().await {
                Ok(Some(bytes)) => {
                    upload.put(bytes);
                    upload.wait_for_capacity(PARTS_IN_FLIGHT).await.map_err(failed)
                }
                Ok(None) => break,
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                // The first failure is reported; parts left behind are removed by the bucket's lifecycle
                // rule.
                let _ = upload.abort().await;
                return Err(error);
            }
        }
        upload.finish().await.map(drop).map_err(failed)
    }

    /// The object's media type, where the store records one. A local file system does not, and refuses it.
    pub(crate) fn attributes(&self, key: &Key) -> Attributes {
        match self.on_disk() {
            Some(_) => Attributes::new(),
            None => Attributes::from_iter([(Attribute::ContentType, key.content_type())]),
        }
    }

    /// Whether the bitstream is stored at its location, by a HEAD request.
    ///
    /// # Errors
    /// The error of the store; a missing or short object is no error.
    pub async fn exists(&self, location: &Location, length: u64) -> Result<bool, StoreError> {
        let object = self.object_length(location).await?;
        Ok(object.is_some_and(|object| lies_within(location, length, object)))
    }

    /// The length in bytes of the object that contains the bitstream, by a HEAD request. None where there is
    /// no such object.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn object_length(&self, location: &Location) -> Result<Option<u64>, StoreError> {
        Ok(self.head_if_there(&Key::of(location)).await?.map(|meta| meta.size))
    }
}

/// Whether a bitstream of `length` bytes fits at its location in an object of `object` bytes.
pub fn lies_within(location: &Location, length: u64, object: u64) -> bool {
    match location.span() {
        None => object == length,
        Some(Span { offset, stored_length, method }) => {
            (method != Method::Stored || stored_length == length)
                && offset.checked_add(stored_length).is_some_and(|end| end <= object)
        }
    }
}

/// Renames a spool file. Returns it when it is on another file system.
fn adopt_file(spooled: Spooled, to: &Path, fsync: bool) -> Result<Option<Spooled>, StoreError> {
    let folder = create_folder_of(to)?;
    if fsync {
        spooled.file.as_file().sync_all().at_file("flush", spooled.file.path())?;
    }
    let Spooled { file, computed } = spooled;
    if let Err(error) = file.persist(to) {
        if error.error.kind() == std::io::ErrorKind::CrossesDevices {
            return Ok(Some(Spooled { file: error.file, computed }));
        }
        return Err(StoreError::of_file("write", to, error.error));
    }
    if fsync {
        flush_folder(folder)?;
    }
    Ok(None)
}

/// The parts of a spool file, one at a time.
struct Parts {
    // None while a thread uses it.
    file: Option<tempfile::NamedTempFile>,
    part: u64,
}

impl Parts {
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        let file = self.file.take();
        let part = self.part;
        let (file, bytes) = blocking("read a spool file", move || {
            let mut bytes = Vec::new();
            if let Some(file) = &file {
                file.as_file().take(part).read_to_end(&mut bytes).at_file("read spool file", file.path())?;
            }
            Ok((file, bytes))
        })
        .await?;
        self.file = file;
        Ok((!bytes.is_empty()).then(|| bytes.into()))
    }
}
