//! Writes objects: one PUT, a renamed spool file, or an upload in parts.

use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use object_store::{
    Attribute, Attributes, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, WriteMultipart,
};

use crate::backend::Local;
use crate::error::{AtFile, AtObject};
use crate::files::{blocking, create_folder_of, flush_folder};
use crate::package_upload::part_bytes;
use crate::spool::Spooled;
use crate::{Key, Store, StoreError};

/// Parts uploaded concurrently. An upload holds at most this many parts and one that is being read.
const PARTS_IN_FLIGHT: usize = 2;

impl Store {
    /// Stores a spooled body under this key.
    pub(crate) async fn put_spooled(&self, key: &Key, spooled: Spooled) -> Result<(), StoreError> {
        match self.on_disk() {
            Some(local) => self.adopt(local, key, spooled).await,
            None => {
                let length = spooled.computed().length();
                self.upload(key, spooled.file, length).await
            }
        }
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
                self.health().succeeded(true);
                Ok(())
            }
            Ok(Some(spooled)) => self.upload(key, spooled.file, length).await,
            Err(error) => {
                self.health().failed_with(&error);
                Err(error)
            }
        }
    }

    async fn upload(&self, key: &Key, file: tempfile::NamedTempFile, length: u64) -> Result<(), StoreError> {
        let part = part_bytes(length);
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
