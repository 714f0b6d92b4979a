//! Bitstreams that are objects of their own, under the digest of their content.

use bytes::Bytes;
use fixity::Sha256;
use fs_err as fs;
use jiff::Timestamp;
use model::{Location, Method, PackageId, SourceId, Span, StoredBitstream};
use object_store::{GetOptions, GetRange, ObjectStore, PutMode};

use crate::error::AtFile;
use crate::files::{blocking, create_folder_of, flush_folder};
use crate::spool::Spooled;
use crate::{Key, Store, StoreError};

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

    /// Moves an object that holds one bitstream to the name of its content, where that copies no bytes. None where it
    /// stays.
    ///
    /// # Errors
    /// As [`Store::put_bitstream`].
    pub(crate) async fn move_to_digest(
        &self,
        stored: &StoredBitstream,
    ) -> Result<Option<Location>, StoreError> {
        let Some(local) = self.on_disk() else { return Ok(None) };
        let sha256 = stored.computed.sha256();
        let from = local.file(&Key::of(&stored.location).path())?;
        let to = local.file(&Key::Bitstream(sha256).path())?;
        let fsync = local.fsync;
        let rename = move || {
            let folder = create_folder_of(&to)?;
            // Its retention starts now, however long it was received.
            let file = fs::OpenOptions::new().write(true).open(&from).at_file("open", &from)?;
            file.file().set_modified(Timestamp::now().into()).at_file("touch", &from)?;
            fs::rename(&from, &to).at_file("rename", &from)?;
            if fsync {
                flush_folder(folder)?;
            }
            Ok(())
        };
        blocking("store a bitstream", rename).await?;
        self.settle_put(sha256, stored.computed.length(), true).await.map(Some)
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
