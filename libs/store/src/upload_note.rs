//! The note beside an unfinished upload: how far it is, for whoever goes on with it.

use fixity::{Computed, SavedHasher, Sha256};
use model::PackageId;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use serde::{Deserialize, Serialize};

use crate::{Key, PackageHead, Store, StoreError};

/// A note of a later version cannot be read, and the upload begins anew.
const VERSION: u32 = 1;

/// How far an upload is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Note {
    version: u32,
    /// The object it will be.
    pub(crate) package: PackageId,
    /// What the server said of it.
    pub(crate) head: PackageHead,
    /// What the store calls it; none before its first part.
    pub(crate) upload: Option<String>,
    /// Bytes of each part but the last.
    pub(crate) part_bytes: u64,
    /// What the store gave for each part.
    pub(crate) parts: Vec<String>,
    /// What is still to come.
    pub(crate) rest: Rest,
}

/// What is still to come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rest {
    /// More bytes.
    Bytes {
        /// The digests of the parts.
        hasher: SavedHasher,
        /// What came behind the last part, put away as an object of its own.
        tail: Option<Tail>,
    },
    /// Nothing: the parts only have to be made the object, if they are not yet.
    Nothing {
        /// Length and digests.
        computed: Computed,
    },
}

/// Bytes that are too few for a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tail {
    /// How many.
    pub(crate) length: u64,
    /// Their digest: another worker may have put others in their place.
    pub(crate) sha256: Sha256,
}

/// A note as it was found.
pub(crate) struct Found {
    /// None when it cannot be read.
    pub(crate) note: Option<Note>,
    /// What a write that replaces it depends on.
    pub(crate) version: UpdateVersion,
}

impl Note {
    pub(crate) fn new(
        package: PackageId,
        head: PackageHead,
        upload: Option<String>,
        part_bytes: u64,
        parts: Vec<String>,
        rest: Rest,
    ) -> Self {
        Self { version: VERSION, package, head, upload, part_bytes, parts, rest }
    }
}

impl Store {
    /// The note at `key`, if there is one.
    pub(crate) async fn read_note(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        let failed = |e| StoreError::of_object(self.root(), key, e);
        let result = match self.objects().get(&key.path()).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            result => result.map_err(failed)?,
        };
        let version =
            UpdateVersion { e_tag: result.meta.e_tag.clone(), version: result.meta.version.clone() };
        let json = result.bytes().await.map_err(failed)?;
        let note = serde_json::from_slice::<Note>(&json).ok().filter(|note| note.version <= VERSION);
        if note.is_none() {
            tracing::warn!(%key, "a note about an unfinished upload cannot be read; the upload begins anew");
        }
        Ok(Some(Found { note, version }))
    }

    /// Writes the note in the place of the one that was `found`, or as the first.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when somebody else has written it meanwhile.
    pub(crate) async fn write_note(
        &self,
        key: &Key,
        note: &Note,
        found: Option<&UpdateVersion>,
    ) -> Result<UpdateVersion, StoreError> {
        let json = serde_json::to_vec(note)
            .map_err(|e| StoreError::Other { at: key.to_string(), source: Box::new(e) })?;
        let mode = match found {
            // Who has the lock of a local upload is alone.
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
        match self.objects().delete(&key.path()).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::of_object(self.root(), key, error)),
        }
    }
}
