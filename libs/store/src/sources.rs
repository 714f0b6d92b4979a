//! The Sources of a store.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use model::SourceId;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};

use crate::{Key, Store, StoreError};

/// Marks that a store contains a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMarker {
    /// The Source.
    pub source: SourceId,
    /// The URL the operator gave.
    pub url: String,
    /// The labels that the operator gave, as of the last run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl SourceMarker {
    /// A marker without labels.
    pub fn new(source: SourceId, url: impl Into<String>) -> Self {
        Self { source, url: url.into(), labels: BTreeMap::new() }
    }
}

impl Store {
    /// Writes the marker of a Source; the same one may be written again.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn note_source(&self, note: &SourceMarker) -> Result<(), StoreError> {
        let key = Key::Source(note.source.clone());
        let json = serde_json::to_vec(note)
            .map_err(|e| StoreError::Other { at: key.to_string(), source: Box::new(e) })?;
        self.put(&key, json.into(), PutMode::Overwrite).await
    }

    /// The marker of a Source; none if this store has no such Source.
    ///
    /// # Errors
    /// As [`Store::sources`].
    pub async fn source(&self, source: &SourceId) -> Result<Option<SourceMarker>, StoreError> {
        match self.source_note(&Key::Source(source.clone())).await {
            Ok(note) => Ok(Some(note)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The Sources of this store, ordered by their ids. Thousands at most, so they are returned at once.
    ///
    /// # Errors
    /// The error of the store; [`StoreError::Damaged`] for a marker that cannot be read.
    pub async fn sources(&self) -> Result<Vec<SourceMarker>, StoreError> {
        let folder = Key::sources();
        let failed = |e| StoreError::of_object(self.root(), &folder, e);
        let mut listed = self.objects().list(Some(&folder));
        let mut notes = Vec::new();
        while let Some(meta) = listed.try_next().await.map_err(failed)? {
            // Other files in this folder are ignored.
            if let Ok(key @ Key::Source(_)) = meta.location.as_ref().parse() {
                notes.push(self.source_note(&key).await?);
            }
        }
        notes.sort_by(|a, b| a.source.cmp(&b.source));
        Ok(notes)
    }

    async fn source_note(&self, key: &Key) -> Result<SourceMarker, StoreError> {
        let failed = |e| StoreError::of_object(self.root(), key, e);
        let result = self.objects().get(&key.path()).await.map_err(failed)?;
        let json = result.bytes().await.map_err(failed)?;
        serde_json::from_slice(&json).map_err(|error| StoreError::Damaged {
            key: key.to_string(),
            expected: "a note about a Source".into(),
            computed: error.to_string(),
        })
    }
}
