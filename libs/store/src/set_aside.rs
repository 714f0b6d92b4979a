//! Setting damaged objects aside. One that has the right name and length would be found by whoever stores its content anew, and taken for it.

use fixity::Sha256;
use futures::TryStreamExt;
use model::{DamageId, Location};
use object_store::{ObjectMeta, ObjectStoreExt};
use tokio::time::timeout;

use crate::{Key, Store, StoreError};

impl Store {
    /// Moves the object of a bitstream away if its bytes are not those that it is named by, and tells where it lies then: it is kept, and nothing
    /// points to it. None when there is no such object, when it is whole, or when it was stored anew meanwhile.
    ///
    /// Whoever stores the same content at this moment sees that the object has gone, and stores it once more.
    ///
    /// # Errors
    /// What the store says. The object may lie in both places then, and is set aside by the next call.
    pub async fn set_aside(&self, sha256: Sha256) -> Result<Option<Key>, StoreError> {
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
                // The mark of the turn stays when nobody knows whether it was removed.
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

/// Whether nobody has written the object between two looks at it.
fn is_same(before: &ObjectMeta, now: &ObjectMeta) -> bool {
    (&before.e_tag, before.size, before.last_modified) == (&now.e_tag, now.size, now.last_modified)
}
