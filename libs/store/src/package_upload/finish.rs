//! The end of an upload: it becomes a package, or is removed.

use model::{Location, PackageId, StoredBitstream};
use object_store::PutMode;

use super::{Kept, PackageUpload, Stage};
use crate::upload_checkpoint::Remainder;
use crate::{Key, StoreError};

impl PackageUpload {
    /// Completes the package: all bytes came. The checkpoint stays until
    /// [`Store::forget_upload`](crate::Store::forget_upload), so that a redelivered job finds the package
    /// instead of fetching it again.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`StoreError::Busy`] also when the store has lost the parts, since the
    /// upload then starts anew.
    pub async fn finish(mut self) -> Result<StoredBitstream, StoreError> {
        // Then an earlier attempt may have completed it.
        let was_whole = self.is_whole();
        if !was_whole {
            let kept = self.take()?;
            if kept.parts.is_empty() {
                return self.finish_small(kept).await;
            }
            let rest = std::mem::take(&mut self.waiting).freeze();
            let mut kept = if rest.is_empty() { kept } else { self.put_part(kept, rest).await? };
            let computed = kept.computed();
            kept.version = Some(self.save(&kept, Remainder::Nothing { computed: computed.clone() }).await?);
            self.stage = Stage::Whole { computed, kept };
        }
        let Stage::Whole { computed, kept } = std::mem::replace(&mut self.stage, Stage::Failed) else {
            return Err(StoreError::Busy { key: self.about.checkpoint.to_string() });
        };
        let stored = self.about.stored(self.about.package, computed);
        if !(was_whole && self.store.exists(&stored.location, stored.computed.length()).await?) {
            self.complete(&kept, &stored).await?;
        }
        if kept.has_tail {
            self.store.remove(&self.about.tail).await?;
        }
        Ok(stored)
    }

    /// Completes a resource that was received as an upload. In a directory it becomes an object under its digest, and
    /// the checkpoint is removed. In a bucket it stays where its parts were put together, since moving it would copy
    /// all bytes, and the checkpoint stays as after [`finish`](Self::finish).
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub async fn finish_as_bitstream(self) -> Result<StoredBitstream, StoreError> {
        let store = self.store.clone();
        let Key::Upload { source, seq } = self.about.checkpoint.clone() else {
            return Err(StoreError::Busy { key: self.about.checkpoint.to_string() });
        };
        let stored = self.finish().await?;
        let Some(location) = store.move_to_digest(&stored).await? else { return Ok(stored) };
        store.forget_upload(&source, seq).await?;
        Ok(StoredBitstream { location, ..stored })
    }

    /// Abandons the upload: removes its checkpoint and its parts.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn abandon(mut self) -> Result<(), StoreError> {
        let kept = self.take()?;
        if let Some(upload) = &kept.upload {
            self.abort(upload).await;
        }
        if kept.has_tail {
            self.store.remove(&self.about.tail).await?;
        }
        if kept.version.is_some() {
            self.store.remove(&self.about.checkpoint).await?;
        }
        self.unlock();
        Ok(())
    }

    /// One PUT under a unique name, for content that fits into one part.
    async fn finish_small(&mut self, mut kept: Box<Kept>) -> Result<StoredBitstream, StoreError> {
        let bytes = std::mem::take(&mut self.waiting).freeze();
        kept.hash(bytes.clone()).await?;
        let computed = kept.computed();
        let stored = self.about.stored(PackageId::fresh(), computed.clone());
        self.store.put(&Key::of(&stored.location), bytes.into(), PutMode::Create).await?;
        let Location::Package { package, .. } = stored.location else { return Ok(stored) };
        if kept.version.is_none() {
            self.unlock();
            return Ok(stored);
        }
        self.about.package = package;
        self.save(&kept, Remainder::Nothing { computed }).await?;
        if kept.has_tail {
            self.store.remove(&self.about.tail).await?;
        }
        Ok(stored)
    }

    async fn complete(&self, kept: &Kept, stored: &StoredBitstream) -> Result<(), StoreError> {
        let length = stored.computed.length();
        let of = self.about.parts_of(kept.upload.clone().unwrap_or_default());
        let Err(error) = self.store.complete_parts(&of, kept.parts.clone(), length).await else {
            return Ok(());
        };
        // An earlier attempt may have succeeded, and only its response was lost.
        if self.store.exists(&stored.location, length).await.unwrap_or(false) {
            return Ok(());
        }
        Err(self.gone(kept.version.as_ref(), error).await)
    }
}
