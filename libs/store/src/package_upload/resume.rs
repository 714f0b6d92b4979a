//! Resumes an interrupted upload where it stopped.

use fixity::{Hasher, Sha256};
use model::PackageId;
use object_store::ObjectStoreExt;

use super::{Kept, PackageUpload, Stage};
use crate::StoreError;
use crate::upload_checkpoint::{Found, Remainder, Tail};

impl PackageUpload {
    /// Resumes from the checkpoint, if there is one.
    pub(super) async fn resume(&mut self, found: Option<Found>) -> Result<(), StoreError> {
        let mut kept = self.fresh();
        let Some(found) = found else {
            self.stage = Stage::Receiving(Box::new(kept));
            return Ok(());
        };
        kept.version = Some(found.version);
        if let Some(checkpoint) = found.checkpoint {
            // A checkpoint is taken over completely or not at all.
            match checkpoint.rest {
                Remainder::Nothing { computed }
                    if self.algorithms.iter().all(|a| computed.get(*a).is_some()) =>
                {
                    kept.upload = checkpoint.upload;
                    kept.parts = checkpoint.parts;
                    self.received = computed.length();
                    self.about.resume(checkpoint.package, checkpoint.head, checkpoint.part_bytes);
                    self.stage = Stage::Whole { computed, kept: Box::new(kept) };
                    return Ok(());
                }
                Remainder::Bytes { hasher, tail } => {
                    if let Some(hasher) = Hasher::restore(self.algorithms.iter().copied(), &hasher) {
                        self.received = hasher.length();
                        self.about.resume(checkpoint.package, checkpoint.head, checkpoint.part_bytes);
                        kept = Kept {
                            hasher,
                            upload: checkpoint.upload,
                            parts: checkpoint.parts,
                            has_tail: tail.is_some(),
                            ..kept
                        };
                        if let Some(tail) = tail {
                            self.take_tail(tail).await?;
                        }
                    } else if let Some(upload) = &checkpoint.upload {
                        self.about.package = checkpoint.package;
                        self.abort(upload).await;
                        self.about.package = PackageId::fresh();
                    }
                }
                Remainder::Nothing { .. } => {}
            }
        }
        self.stage = Stage::Receiving(Box::new(kept));
        Ok(())
    }

    /// Reads the bytes behind the last part, if they still match the checkpoint.
    async fn take_tail(&mut self, tail: Tail) -> Result<(), StoreError> {
        let failed = |e| StoreError::of_object(self.store.root(), &self.about.tail, e);
        let found = self.store.objects().get(&self.about.tail.path()).await;
        let Some(found) = self.store.if_there(&self.about.tail, found)? else { return Ok(()) };
        if found.meta.size != tail.length || tail.length >= self.about.part_bytes {
            return Ok(());
        }
        let bytes = found.bytes().await.map_err(failed)?;
        if Sha256::of(&bytes) == tail.sha256 {
            self.received += tail.length;
            self.waiting.extend_from_slice(&bytes);
        }
        Ok(())
    }
}
