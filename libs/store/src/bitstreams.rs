//! Bitstreams that are objects of their own, under the digest of their content.

use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use fixity::Sha256;
use fs_err as fs;
use jiff::Timestamp;
use model::{Location, Method, PackageId, SourceId, Span};
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, WriteMultipart,
};

use crate::open::Local;
use crate::spool::{Spooled, blocking};
use crate::{Key, Store, StoreError};

/// The smallest part of a multipart upload; a body up to this size is one request.
const PART_BYTES: u64 = 8 * 1024 * 1024;
/// Parts uploaded concurrently. An upload holds at most this many parts and one that is being read.
const PARTS_IN_FLIGHT: usize = 2;
/// S3 takes at most 10,000 parts.
const MOST_PARTS: u64 = 9_000;

impl Store {
    /// Stores a spooled body as an object under its digest. The retention of an object that already exists
    /// starts again, so that gc does not remove it.
    ///
    /// # Errors
    /// The error of the store; [`StoreError::Busy`] when the object was removed at this very moment. The same
    /// content can always be put again.
    pub async fn put_bitstream(&self, spooled: Spooled) -> Result<Location, StoreError> {
        let sha256 = spooled.computed().sha256();
        let length = spooled.computed().length();
        let key = Key::Bitstream(sha256);
        let location = Location::Object { sha256 };
        let found = self.head_if_there(&key).await?;
        let is_whole = found.as_ref().is_some_and(|meta| meta.size == length);
        if !(is_whole && self.touch(&key).await?) {
            self.place(&key, spooled).await?;
        }
        self.settle_put(&location, length, found.is_some()).await?;
        Ok(location)
    }

    /// As [`Store::put_bitstream`], but overwrites an existing object: one of the right name and length may
    /// be damaged.
    ///
    /// # Errors
    /// As [`Store::put_bitstream`].
    pub async fn put_bitstream_anew(&self, spooled: Spooled) -> Result<Location, StoreError> {
        let sha256 = spooled.computed().sha256();
        let length = spooled.computed().length();
        let location = Location::Object { sha256 };
        self.place(&Key::Bitstream(sha256), spooled).await?;
        self.settle_put(&location, length, true).await?;
        Ok(location)
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
        self.place(&Key::Package { source: source.clone(), package }, spooled).await
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
        let result = match self.objects().get_opts(&key.path(), options).await.map_err(failed) {
            Ok(result) => result,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
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
    async fn place(&self, key: &Key, spooled: Spooled) -> Result<(), StoreError> {
        match self.on_disk() {
            Some(local) => self.adopt(local, key, spooled).await,
            None => {
                let length = spooled.computed().length();
                self.upload(key, spooled.file, length).await
            }
        }
    }

    /// Stores a body in memory as an object under its digest, as [`Store::put_bitstream`].
    ///
    /// # Errors
    /// As [`Store::put_bitstream`].
    pub async fn put_small_bitstream(&self, sha256: Sha256, body: Bytes) -> Result<Location, StoreError> {
        debug_assert_eq!(sha256, Sha256::of(&body));
        let key = Key::Bitstream(sha256);
        let location = Location::Object { sha256 };
        let length = body.len() as u64;
        let found = self.head_if_there(&key).await?;
        let is_whole = found.as_ref().is_some_and(|meta| meta.size == length);
        if !(is_whole && self.touch(&key).await?) {
            self.put(&key, body.into(), PutMode::Overwrite).await?;
        }
        self.settle_put(&location, length, found.is_some()).await?;
        Ok(location)
    }

    /// As [`Store::put_small_bitstream`], but overwrites an existing object.
    ///
    /// # Errors
    /// As [`Store::put_bitstream`].
    pub async fn put_small_bitstream_anew(
        &self,
        sha256: Sha256,
        body: Bytes,
    ) -> Result<Location, StoreError> {
        let location = Location::Object { sha256 };
        let length = body.len() as u64;
        self.put(&Key::Bitstream(sha256), body.into(), PutMode::Overwrite).await?;
        self.settle_put(&location, length, true).await?;
        Ok(location)
    }

    /// Restarts an object's retention without writing its bytes, where the store can. Returns whether it did.
    async fn touch(&self, key: &Key) -> Result<bool, StoreError> {
        // S3 cannot: there the same bytes are written again.
        let Some(local) = self.on_disk() else { return Ok(false) };
        let path = local.objects.path_to_filesystem(&key.path());
        let path = path.map_err(|e| StoreError::of_object(self.root(), key, e))?;
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
    async fn settle_put(&self, location: &Location, length: u64, was_there: bool) -> Result<(), StoreError> {
        let swept = self.outwait_sweep().await?;
        if (swept || was_there) && !self.exists(location, length).await? {
            return Err(StoreError::Busy { key: Key::of(location).to_string() });
        }
        Ok(())
    }

    /// One PUT.
    pub(crate) async fn put(&self, key: &Key, body: PutPayload, mode: PutMode) -> Result<(), StoreError> {
        let options = PutOptions { mode, attributes: self.attributes(key), ..Default::default() };
        let result = self.objects().put_opts(&key.path(), body, options).await;
        result.map(drop).map_err(|e| StoreError::of_object(self.root(), key, e))
    }

    /// Renames the spool file to the object's place, so a local store writes the bytes once.
    async fn adopt(&self, local: &Local, key: &Key, spooled: Spooled) -> Result<(), StoreError> {
        let failed = |e| StoreError::of_object(self.root(), key, e);
        let to = local.objects.path_to_filesystem(&key.path()).map_err(failed)?;
        let fsync = local.fsync;
        let length = spooled.computed().length();
        let moved = blocking("store a bitstream", move || adopt_file(spooled, &to, fsync)).await;
        match moved {
            Ok(Adopted::Moved) => {
                self.board().succeeded(true);
                Ok(())
            }
            // The spool is on another file system.
            Ok(Adopted::Elsewhere(spooled)) => self.upload(key, spooled.file, length).await,
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
        let key = Key::of(location);
        match self.objects().head(&key.path()).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(error) => match StoreError::of_object(self.root(), &key, error) {
                StoreError::NotFound { .. } => Ok(None),
                error => Err(error),
            },
        }
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

enum Adopted {
    Moved,
    Elsewhere(Spooled),
}

fn adopt_file(spooled: Spooled, to: &Path, fsync: bool) -> Result<Adopted, StoreError> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|e| StoreError::of_file("create directory", folder, e))?;
    if fsync {
        spooled
            .file
            .as_file()
            .sync_all()
            .map_err(|e| StoreError::of_file("flush", spooled.file.path(), e))?;
    }
    let computed = spooled.computed().clone();
    if let Err(error) = spooled.file.persist(to) {
        if error.error.kind() == std::io::ErrorKind::CrossesDevices {
            return Ok(Adopted::Elsewhere(Spooled::from_parts(error.file, computed)));
        }
        return Err(StoreError::of_file("write", to, error.error));
    }
    if fsync {
        let flush = fs::File::open(folder).and_then(|folder| folder.sync_all());
        flush.map_err(|e| StoreError::of_file("flush directory", folder, e))?;
    }
    Ok(Adopted::Moved)
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
                let read = file.as_file().take(part).read_to_end(&mut bytes);
                read.map_err(|e| StoreError::of_file("read spool file", file.path(), e))?;
            }
            Ok((file, bytes))
        })
        .await?;
        self.file = file;
        Ok((!bytes.is_empty()).then(|| bytes.into()))
    }
}
