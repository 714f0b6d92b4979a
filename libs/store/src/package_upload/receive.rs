//! Receives bytes in parts. Each part is hashed, stored and recorded before the next.

use bytes::{Bytes, BytesMut};
use fixity::Sha256;
use model::PackageId;
use object_store::{PutMode, UpdateVersion};

use super::progress::{About, Kept};
use super::{PackageUpload, Stage};
use crate::StoreError;
use crate::package_head::PackageHead;
use crate::upload_checkpoint::{Remainder, Tail};

impl PackageUpload {
    /// Starts anew, under another name: no bytes came yet, or the server has another version now.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn begin(&mut self, head: PackageHead) -> Result<(), StoreError> {
        let old = self.take()?;
        if let Some(upload) = &old.upload {
            self.abort(upload).await;
        }
        self.about.package = PackageId::fresh();
        self.about.head = head;
        self.waiting.clear();
        self.received = 0;
        // The old checkpoint stays until the new one replaces it.
        self.stage =
            Stage::Receiving(Box::new(Kept { version: old.version, has_tail: old.has_tail, ..self.fresh() }));
        Ok(())
    }

    /// Appends the next piece. As soon as a part is complete, it is hashed, stored and recorded, before this
    /// returns.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another worker has resumed this upload; otherwise the error of the store.
    /// The upload cannot be used after that, nor after a cancelled call: open it again.
    pub async fn append(&mut self, mut piece: Bytes) -> Result<(), StoreError> {
        let part = usize::try_from(self.about.part_bytes).unwrap_or(usize::MAX);
        self.received += piece.len() as u64;
        while self.waiting.len() + piece.len() >= part {
            self.waiting.extend_from_slice(&piece.split_to(part - self.waiting.len()));
            let kept = self.take()?;
            let bytes = std::mem::replace(&mut self.waiting, BytesMut::with_capacity(part)).freeze();
            let kept = self.put_part(kept, bytes).await?;
            self.stage = Stage::Receiving(self.record_part(kept).await?);
        }
        self.waiting.extend_from_slice(&piece);
        Ok(())
    }

    /// Stores all bytes that came, and returns their number: the next worker resumes there.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub async fn keep(mut self) -> Result<u64, StoreError> {
        let kept = self.take()?;
        if !self.waiting.is_empty() {
            let bytes = std::mem::take(&mut self.waiting).freeze();
            let tail = Tail { length: bytes.len() as u64, sha256: Sha256::of(&bytes) };
            self.store.put(&self.about.tail, bytes.into(), PutMode::Overwrite).await?;
            self.save(&kept, Remainder::Bytes { hasher: kept.hasher.save(), tail: Some(tail) }).await?;
        } else if kept.parts.is_empty() && kept.version.is_none() {
            self.unlock();
        }
        Ok(self.received)
    }

    /// Hashes a part and stores it.
    pub(super) async fn put_part(&self, mut kept: Box<Kept>, bytes: Bytes) -> Result<Box<Kept>, StoreError> {
        kept.hash(bytes.clone()).await?;
        let upload = match &kept.upload {
            Some(upload) => upload.clone(),
            None => kept.upload.insert(self.store.begin_parts(&self.about.key()).await?).clone(),
        };
        let of = self.about.parts_of(upload);
        match self.store.put_part(&of, kept.parts.len(), bytes, self.lock.clone()).await {
            Ok(part) => {
                kept.parts.push(part);
                Ok(kept)
            }
            Err(error) => Err(self.gone(kept.version.as_ref(), error).await),
        }
    }

    /// Records a stored part in the checkpoint.
    async fn record_part(&self, mut kept: Box<Kept>) -> Result<Box<Kept>, StoreError> {
        match self.save(&kept, Remainder::Bytes { hasher: kept.hasher.save(), tail: None }).await {
            Ok(version) => {
                kept.version = Some(version);
                Ok(kept)
            }
            Err(error) => {
                // An upload without a checkpoint is known to this process only.
                if let ([_], Some(upload)) = (&kept.parts[..], &kept.upload) {
                    self.abort(upload).await;
                }
                Err(error)
            }
        }
    }

    /// Writes the checkpoint, and returns its version.
    pub(super) async fn save(&self, kept: &Kept, rest: Remainder) -> Result<UpdateVersion, StoreError> {
        let checkpoint = self.about.checkpoint(kept, rest);
        self.store.write_checkpoint(&self.about.checkpoint, &checkpoint, kept.version.as_ref()).await
    }

    /// The error to report for a failed upload. If the store has lost its parts, the upload starts anew: its
    /// checkpoint is removed, unless another worker wrote it meanwhile.
    pub(super) async fn gone(&self, found: Option<&UpdateVersion>, error: StoreError) -> StoreError {
        if !matches!(error, StoreError::NotFound { .. }) {
            return error;
        }
        let Self { store, about: About { checkpoint, .. }, .. } = self;
        match store.read_checkpoint(checkpoint).await {
            Ok(Some(now)) if store.on_disk().is_some() || Some(&now.version) == found => {
                tracing::warn!(key = %checkpoint, "the parts of an unfinished upload are gone; it begins anew");
                if let Err(error) = store.remove(checkpoint).await {
                    return error;
                }
            }
            Ok(_) => {}
            Err(error) => return error,
        }
        StoreError::Busy { key: checkpoint.to_string() }
    }
}
