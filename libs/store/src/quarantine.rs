//! Quarantine of damaged objects. A later put of the same content would find a damaged object with the right
//! name and length, and reuse it.

use fixity::Sha256;
use futures::TryStreamExt;
use model::{DamageId, Location};
use object_store::{ObjectMeta, ObjectStoreExt};
use tokio::time::timeout;

use crate::{Key, Store, StoreError};

impl Store {
    /// Moves the object of a bitstream to quarantine if its bytes do not match its name, and returns its new
    /// key. The bytes are kept, but nothing points to them. Returns None when there is no such object, when
    /// it is intact, or when it was stored anew meanwhile.
    ///
    /// A concurrent put of the same content notices that the object has gone, and stores it again.
    ///
    /// # Errors
    /// The error of the store. The object may then exist in both places; the next call quarantines it.
    pub async fn quarantine(&self, sha256: Sha256) -> Result<Option<Key>, StoreError> {
        let key = Key::Bitstream(sha256);
        let Some(before) = self.head_if_there(&key).await? else { return Ok(None) };
        if self.is_whole(sha256, before.size).await? {
            return Ok(None);
        }
        let failed = |e| StoreError::of_object(self.root(), &key, e);
        let aside = Key::Damaged { id: DamageId::fresh(), sha256 };
        self.objects().copy(&key.path(), &aside.path()).await.map_err(failed)?;
        let turn = self.begin_sweep().await?;
        let is_removed = match self.head_if_there(&key).await {
            Ok(Some(now)) if is_same(&before, &now) && turn.lasts() => {
                // The lock's mark stays when it is unknown whether the object was removed.
                let late = || self.too_slow();
                timeout(turn.rest(), self.remove(&key)).await.map_err(|_| late())??;
                true
            }
            Ok(_) => false,
            Err(error) => {
                self.end_sweep(turn).await.ok();
                return Err(error);
            }
        };
        self.end_sweep(turn).await?;
        if !is_removed {
            self.remove(&aside).await?;
        }
        Ok(is_removed.then_some(aside))
    }

    async fn is_whole(&self, sha256: Sha256, size: u64) -> Result<bool, StoreError> {
        let read = async {
            let mut bytes = self.read(&Location::Object { sha256 }, size).await?;
            while bytes.try_next().await?.is_some() {}
            Ok(())
        };
        match read.await {
            Ok(()) => Ok(true),
            Err(StoreError::Damaged { .. } | StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether the object was not written between two reads of its metadata.
fn is_same(before: &ObjectMeta, now: &ObjectMeta) -> bool {
    (&before.e_tag, before.size, before.last_modified) == (&now.e_tag, now.size, now.last_modified)
}
