//! Garbage collection: lists stored objects, and removes those that the caller found unneeded.
//!
//! The store itself decides one thing only: it spares a bitstream that a put found or stored since the
//! listing.

use fixity::Sha256;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use model::SourceId;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::error::AtObject;
use crate::{Amount, Key, Store, StoreError};

/// Bitstreams removed in one turn.
const PER_TURN: usize = 200;
/// Concurrent HEAD requests.
const IN_FLIGHT: usize = 16;
/// Objects removed by one request, where the store supports it.
const AT_ONCE: usize = 1_000;

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: Key,
    /// Its length in bytes.
    pub size: u64,
    /// When it was stored, by the store's clock.
    pub modified: Timestamp,
}

/// Listed objects, in no order.
pub type Listing = BoxStream<'static, Result<Listed, StoreError>>;

impl Store {
    /// The bitstreams that are objects of their own and whose digest begins with this byte.
    pub fn list_bitstreams(&self, first: u8) -> Listing {
        self.listing(Key::bitstreams_of(first))
    }

    /// The packs of a Source.
    pub fn list_packs(&self, source: &SourceId) -> Listing {
        self.listing(Key::packs(source))
    }

    /// The packages of a Source, and the other objects in their folder.
    pub fn list_packages(&self, source: &SourceId) -> Listing {
        self.listing(Key::packages(source))
    }

    /// The checkpoints and tails of a Source's uploads.
    pub(crate) fn list_uploads(&self, source: &SourceId) -> Listing {
        self.listing(Key::uploads(source))
    }

    /// The Sources that have a catalog in this store, with or without a marker. Thousands at most, so they
    /// are returned at once.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn catalogs(&self) -> Result<Vec<SourceId>, StoreError> {
        self.named_in(&[Key::catalogs()]).await
    }

    /// The Sources that have packs, packages or uploads in this store, whether configured or not.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn folders(&self) -> Result<Vec<SourceId>, StoreError> {
        self.named_in(&Key::folders_of_sources()).await
    }

    async fn named_in(&self, folders: &[Path]) -> Result<Vec<SourceId>, StoreError> {
        let mut sources: Vec<SourceId> = Vec::new();
        for folder in folders {
            let listed =
                self.objects().list_with_delimiter(Some(folder)).await.at_object(self.root(), folder)?;
            let names = listed.common_prefixes.iter().filter_map(|path| path.filename());
            sources.extend(names.filter_map(|name| name.parse::<SourceId>().ok()));
        }
        sources.sort();
        sources.dedup();
        Ok(sources)
    }

    /// Removes unneeded packs or packages, and returns what was removed. One that is already gone is no
    /// error.
    ///
    /// Only for names that are used once. A bitstream may have been found by a put just now.
    ///
    /// # Errors
    /// The error of the store; some may be removed by then.
    pub async fn remove_unneeded(&self, unneeded: Vec<Listed>) -> Result<Amount, StoreError> {
        let mut removed = Amount::default();
        for chunk in unneeded.chunks(AT_ONCE) {
            debug_assert!(
                chunk.iter().all(|listed| matches!(listed.key, Key::Pack { .. } | Key::Package { .. }))
            );
            self.delete(chunk.iter().map(|listed| listed.key.path()).collect()).await?;
            chunk.iter().for_each(|listed| removed.add(listed.size));
        }
        Ok(removed)
    }

    /// Removes bitstreams that no record pointed to when the caller checked, except those stored or found at
    /// `young` or later. Returns what was removed.
    ///
    /// # Errors
    /// The error of the store; some may be removed by then.
    pub async fn remove_bitstreams(
        &self,
        unneeded: Vec<Sha256>,
        young: Timestamp,
    ) -> Result<Amount, StoreError> {
        let mut removed = Amount::default();
        for chunk in unneeded.chunks(PER_TURN) {
            let turn = self.begin_sweep().await?;
            let found: Result<Vec<Option<ObjectMeta>>, StoreError> = stream::iter(chunk.to_vec())
                .map(|sha256| async move { self.head_if_there(&Key::Bitstream(sha256)).await })
                .buffer_unordered(IN_FLIGHT)
                .try_collect()
                .await;
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    // No request is outstanding, so no put has to wait until the turn expires.
                    self.end_sweep(turn).await.ok();
                    return Err(error);
                }
            };
            let old: Vec<ObjectMeta> =
                found.into_iter().flatten().filter(|meta| modified(meta) < young).collect();
            // One by one where the store has no bulk delete: each within the turn.
            for few in old.chunks(PER_TURN / 4) {
                if !turn.lasts() {
                    tracing::warn!("the store is slow: some bitstreams are left to the next gc");
                    break;
                }
                let paths = few.iter().map(|meta| meta.location.clone()).collect();
                let deleted = tokio::time::timeout(turn.rest(), self.delete(paths)).await;
                // The lock's mark stays: it is unknown when the sent requests arrive.
                deleted.map_err(|_| self.too_slow())??;
                few.iter().for_each(|meta| removed.add(meta.size));
            }
            self.end_sweep(turn).await?;
        }
        Ok(removed)
    }

    pub(crate) async fn head_if_there(&self, key: &Key) -> Result<Option<ObjectMeta>, StoreError> {
        self.if_there(key, self.objects().head(&key.path()).await)
    }

    /// The result of a request for an object that may not exist.
    pub(crate) fn if_there<T>(
        &self,
        key: &Key,
        result: object_store::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        match result.at_object(self.root(), key) {
            Ok(found) => Ok(Some(found)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, paths: Vec<Path>) -> Result<(), StoreError> {
        let asked = stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut deleted = self.objects().delete_stream(asked);
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(StoreError::of_object(self.root(), &"gc", error)),
            }
        }
        Ok(())
    }

    pub(crate) fn too_slow(&self) -> StoreError {
        let message = "it did not answer in time when bitstreams were removed".to_owned();
        StoreError::Unavailable { at: self.root().to_owned(), message }
    }

    fn listing(&self, folder: Path) -> Listing {
        let root = self.root().to_owned();
        let listed = self.objects().list(Some(&folder));
        listed
            .map_err(move |error| StoreError::of_object(&root, &folder, error))
            .try_filter_map(|meta| async move {
                // Other objects in this folder are ignored.
                let key = meta.location.as_ref().parse().ok();
                Ok(key.map(|key| Listed { key, size: meta.size, modified: modified(&meta) }))
            })
            .boxed()
    }
}

/// When an object was stored. An unknown time counts as now.
fn modified(meta: &ObjectMeta) -> Timestamp {
    let time = meta.last_modified;
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or(0);
    Timestamp::new(time.timestamp(), nanos).unwrap_or_else(|_| Timestamp::now())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::backend::Backend;
    use crate::testing::{Faulty, no_heads};

    #[tokio::test]
    async fn when_bitstreams_cannot_be_looked_at_the_turn_is_over_all_the_same() {
        let objects = Arc::new(InMemory::new());
        let backend = Backend::unlisted(Arc::clone(&objects) as _);
        let objects = Arc::new(Faulty::reading(objects, no_heads));
        let store = Store::over(objects, backend, "memory", std::env::temp_dir());
        let failed = store.remove_bitstreams(vec![Sha256::of(b"x")], Timestamp::MAX).await;
        assert!(matches!(failed, Err(StoreError::Other { .. })), "{failed:?}");
        assert!(!store.outwait_sweep().await.unwrap());
    }
}
