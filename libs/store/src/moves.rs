//! Moves of Sources to other entry URLs (docs/adr/0067). The new Source begins with a copy of the former one's catalog;
//! both point to the same bytes.

use std::io::ErrorKind;

use fs_err as fs;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use model::SourceId;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};

use crate::error::{AtFile, AtObject};
use crate::files::blocking;
use crate::{Key, Store, StoreError};

/// A move, as `moves/<source>.json` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMove {
    /// The Source that was left.
    pub source: SourceId,
    /// Its entry URL.
    pub url: String,
    /// The Source that was moved to.
    pub to: SourceId,
    /// Its entry URL.
    pub to_url: String,
    /// When.
    pub at: Timestamp,
    /// Whether the new Source has its whole catalog. Until then a repeated move copies it anew.
    #[serde(default)]
    pub is_whole: bool,
}

/// The part of a database's object keys that lists its other objects. They are copied last.
const MANIFESTS: &str = "manifest";
/// Objects that are copied at the same time.
const AT_ONCE: usize = 8;

impl Store {
    /// Records a move, over an earlier record of the same Source.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn note_move(&self, moved: &SourceMove) -> Result<(), StoreError> {
        let key = Key::Move(moved.source.clone());
        let json = serde_json::to_vec(moved)
            .map_err(|e| StoreError::Other { at: key.to_string(), source: Box::new(e) })?;
        self.put(&key, json.into(), PutMode::Overwrite).await
    }

    /// Forgets the move of a Source; none is no error.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn forget_move(&self, source: &SourceId) -> Result<(), StoreError> {
        self.remove(&Key::Move(source.clone())).await
    }

    /// The moves of this store, ordered by the Sources that were left.
    ///
    /// # Errors
    /// The error of the store; [`StoreError::Damaged`] for a record that cannot be read.
    pub async fn moves(&self) -> Result<Vec<SourceMove>, StoreError> {
        let folder = Key::moves();
        let mut listed = self.objects().list(Some(&folder));
        let mut moves = Vec::new();
        while let Some(meta) = listed.try_next().await.at_object(self.root(), &folder)? {
            // Other files in this folder are ignored.
            let Ok(key @ Key::Move(_)) = meta.location.as_ref().parse() else { continue };
            let result = self.objects().get(&key.path()).await.at_object(self.root(), &key)?;
            let json = result.bytes().await.at_object(self.root(), &key)?;
            moves.push(serde_json::from_slice(&json).map_err(|error| StoreError::Damaged {
                key: key.to_string(),
                expected: "the move of a Source".into(),
                computed: error.to_string(),
            })?);
        }
        moves.sort_by(|a: &SourceMove, b| a.source.cmp(&b.source));
        Ok(moves)
    }

    /// Copies the catalog of a Source to another one, over what that has. No process may have either open for writing.
    ///
    /// # Errors
    /// The error of the store. Then the copy is not usable, and is to be made again.
    pub async fn copy_catalog(&self, from: &SourceId, to: &SourceId) -> Result<(), StoreError> {
        self.remove_catalog(to).await?;
        let (from, to) = (Key::Catalog(from.clone()).path(), Key::Catalog(to.clone()).path());
        let all = self.below(&from).await?;
        let is_manifest = |path: &Path| path.as_ref().contains(&format!("/{MANIFESTS}/"));
        let (manifests, others): (Vec<Path>, Vec<Path>) = all.into_iter().partition(is_manifest);
        // A database begins with its manifests, and they name the others.
        for paths in [others, manifests] {
            let copies = paths.into_iter().map(|path| {
                let name = path.as_ref().strip_prefix(from.as_ref()).unwrap_or_default();
                let target = Path::from(format!("{to}{name}"));
                async move { self.objects().copy(&path, &target).await.at_object(self.root(), &path) }
            });
            stream::iter(copies).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        }
        Ok(())
    }

    /// Removes a Source from this store: its marker, then its catalog. Bytes stay until `gc`.
    ///
    /// # Errors
    /// The error of the store. It may be repeated.
    pub async fn remove_source(&self, source: &SourceId) -> Result<(), StoreError> {
        self.noted_sources().forget(source);
        self.remove(&Key::Source(source.clone())).await?;
        self.remove_catalog(source).await
    }

    async fn remove_catalog(&self, source: &SourceId) -> Result<(), StoreError> {
        let folder = Key::Catalog(source.clone()).path();
        if let Some(local) = self.on_disk() {
            // A folder without files would still be that of a catalog.
            let directory = local.data().join(folder.as_ref());
            return blocking("remove a catalog", move || match fs::remove_dir_all(&directory) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).at_file("remove directory", &directory)
                }
                _ => Ok(()),
            })
            .await;
        }
        let paths = self.below(&folder).await?;
        let asked = stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut deleted = self.objects().delete_stream(asked);
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error).at_object(self.root(), &folder),
            }
        }
        Ok(())
    }

    /// The objects below a folder. A catalog has hundreds.
    async fn below(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        let listed = self.objects().list(Some(folder)).map_ok(|meta| meta.location);
        listed.try_collect().await.at_object(self.root(), folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_catalog_is_copied_and_removed_with_its_source() {
        let store = Store::in_memory();
        let objects = store.object_store();
        let path = |source: &str, name: &str| Path::from(format!("catalogs/{source}/{name}"));
        for name in ["manifest/1.manifest", "wal/1.sst"] {
            objects.put(&path("a", name), "one".into()).await.unwrap();
        }
        // What is there of an earlier copy goes.
        objects.put(&path("b", "wal/7.sst"), "old".into()).await.unwrap();
        objects.put(&path("bc", "wal/7.sst"), "other".into()).await.unwrap();
        let [a, b] = ["a", "b"].map(|id| id.parse::<SourceId>().unwrap());
        store.copy_catalog(&a, &b).await.unwrap();
        let all = async || -> Vec<String> {
            let listed = objects.list(None).map_ok(|meta| meta.location.to_string());
            let mut all: Vec<String> = listed.try_collect().await.unwrap();
            all.sort();
            all
        };
        let expected = [
            "catalogs/a/manifest/1.manifest",
            "catalogs/a/wal/1.sst",
            "catalogs/b/manifest/1.manifest",
            "catalogs/b/wal/1.sst",
            "catalogs/bc/wal/7.sst",
        ];
        assert_eq!(all().await, expected);
        store.remove_source(&b).await.unwrap();
        assert_eq!(all().await, [expected[0], expected[1], expected[4]]);
    }

    #[tokio::test]
    async fn moves_are_recorded_and_forgotten() {
        let store = Store::in_memory();
        let moved = SourceMove {
            source: "a".parse().unwrap(),
            url: "http://a/oai".to_owned(),
            to: "b".parse().unwrap(),
            to_url: "http://a/".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            is_whole: false,
        };
        store.note_move(&moved).await.unwrap();
        let whole = SourceMove { is_whole: true, ..moved };
        store.note_move(&whole).await.unwrap();
        assert_eq!(store.moves().await.unwrap(), std::slice::from_ref(&whole));
        for _ in 0..2 {
            store.forget_move(&whole.source).await.unwrap();
            assert_eq!(store.moves().await.unwrap(), []);
        }
    }
}
