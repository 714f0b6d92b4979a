//! Checkpoint of an unfinished upload: the progress from which another process resumes.

use fixity::{Computed, SavedHasher, Sha256};
use model::{PackageId, Persisted};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use serde::{Deserialize, Serialize};

use crate::package_head::PackageHead;
use crate::{Key, Store, StoreError};

/// Version of the format. A checkpoint of a later version cannot be read, and the upload starts anew.
pub(crate) const VERSION: u32 = Persisted::Uploads.version() as u32;

/// The progress of an upload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UploadCheckpoint {
    pub(crate) version: u32,
    /// The object it will be.
    pub(crate) package: PackageId,
    /// The server's description of it.
    pub(crate) head: PackageHead,
    /// The store's id of the upload; none before its first part.
    pub(crate) upload: Option<String>,
    /// Bytes of each part but the last.
    pub(crate) part_bytes: u64,
    /// The store's id of each part.
    pub(crate) parts: Vec<String>,
    /// The rest of the upload.
    pub(crate) rest: Remainder,
}

/// The rest of an upload.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Remainder {
    /// More bytes are to come.
    Bytes {
        /// The digests' state behind the last part.
        hasher: SavedHasher,
        /// The bytes behind the last part, stored as an object of its own.
        tail: Option<Tail>,
    },
    /// All bytes came: the parts only have to be completed, if they are not yet.
    Nothing {
        /// Length and digests.
        computed: Computed,
    },
}

/// Bytes that are too few for a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tail {
    /// Their number.
    pub(crate) length: u64,
    /// Their digest: another worker may have replaced them.
    pub(crate) sha256: Sha256,
}

/// A checkpoint that was read.
pub(crate) struct Found {
    /// None when it cannot be read.
    pub(crate) checkpoint: Option<UploadCheckpoint>,
    /// The version that a replacing write requires.
    pub(crate) version: UpdateVersion,
}

impl Store {
    /// Reads the checkpoint at `key`, if there is one.
    pub(crate) async fn read_checkpoint(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        let failed = |e| StoreError::of_object(self.root(), key, e);
        let result = self.objects().get(&key.path()).await;
        let Some(result) = self.if_there(key, result)? else { return Ok(None) };
        let version =
            UpdateVersion { e_tag: result.meta.e_tag.clone(), version: result.meta.version.clone() };
        let json = result.bytes().await.map_err(failed)?;
        let checkpoint = serde_json::from_slice::<UploadCheckpoint>(&json)
            .ok()
            .filter(|checkpoint| checkpoint.version <= VERSION);
        if checkpoint.is_none() {
            tracing::warn!(%key, "the checkpoint of an unfinished upload cannot be read; the upload starts anew");
        }
        Ok(Some(Found { checkpoint, version }))
    }

    /// Replaces the checkpoint that was `found`, or writes the first one.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another worker wrote it meanwhile.
    pub(crate) async fn write_checkpoint(
        &self,
        key: &Key,
        checkpoint: &UploadCheckpoint,
        found: Option<&UpdateVersion>,
    ) -> Result<UpdateVersion, StoreError> {
        let json = serde_json::to_vec(checkpoint)
            .map_err(|e| StoreError::Other { at: key.to_string(), source: Box::new(e) })?;
        let mode = match found {
            // The holder of a local upload's lock is the only writer.
            _ if self.on_disk().is_some() => PutMode::Overwrite,
            None => PutMode::Create,
            Some(found) => PutMode::Update(found.clone()),
        };
        let options = PutOptions { mode, attributes: self.attributes(key), ..Default::default() };
        match self.objects().put_opts(&key.path(), json.into(), options).await {
            Ok(put) => Ok(put.into()),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Err(StoreError::Busy { key: key.to_string() })
            }
            Err(error) => Err(StoreError::of_object(self.root(), key, error)),
        }
    }

    /// Removes an object that may be gone already.
    pub(crate) async fn remove(&self, key: &Key) -> Result<(), StoreError> {
        let deleted = self.objects().delete(&key.path()).await;
        self.if_there(key, deleted).map(drop)
    }
}
