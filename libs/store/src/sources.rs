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
    /// Writes the marker of a Source. One that this process wrote within the last hour is not written again.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn note_source(&self, note: &SourceMarker) -> Result<(), StoreError> {
        let key = Key::Source(note.source.clone());
        let json = serde_json::to_vec(note)
            .map_err(|e| StoreError::Other { at: key.to_string(), source: Box::new(e) })?;
        if self.noted_sources().has(&note.source, &json) {
            return Ok(());
        }
        self.noted_sources().forget(&note.source);
        self.put(&key, json.clone().into(), PutMode::Overwrite).await?;
        self.noted_sources().add(&note.source, json);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noted_sources::NOTED_FOR;

    fn puts(store: &Store) -> u64 {
        let puts = store.operations();
        puts.counted()
            .filter(|(operation, ..)| *operation == crate::Operation::Put)
            .map(|(.., count)| count)
            .sum()
    }

    #[tokio::test(start_paused = true)]
    async fn a_marker_is_written_once_an_hour_and_when_it_is_another() {
        let store = Store::in_memory();
        let note = SourceMarker::new("s".parse().unwrap(), "http://h/");
        for _ in 0..3 {
            store.note_source(&note).await.unwrap();
        }
        assert_eq!(puts(&store), 1);
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let labelled = SourceMarker { labels, ..note.clone() };
        store.note_source(&labelled).await.unwrap();
        store.note_source(&note).await.unwrap();
        assert_eq!(puts(&store), 3);
        assert_eq!(store.source(&note.source).await.unwrap(), Some(note.clone()));
        store.noted_sources().forget(&note.source);
        store.note_source(&note).await.unwrap();
        assert_eq!(puts(&store), 4, "it may have been removed");
        tokio::time::advance(NOTED_FOR).await;
        store.note_source(&note).await.unwrap();
        assert_eq!(puts(&store), 5, "another process may have written another one");
    }
}
