//! Uploads of dump packages, part by part. An interrupted upload resumes after its last part.

use std::sync::Arc;

use bytes::BytesMut;
use fixity::{Algorithm, Computed, Hasher};
use model::{PackageId, Seq, SourceId};

use crate::files::blocking;
use crate::package_head::PackageHead;
use crate::upload_checkpoint::{Found, UploadCheckpoint};
use crate::upload_lock::UploadLock;
use crate::{Key, Store, StoreError};

mod finish;
mod progress;
mod receive;
mod resume;

use progress::{About, Kept};

/// The smallest part. S3 takes no smaller one than 5 MiB, and a crash costs one part at most.
const PART_BYTES: u64 = 8 * 1024 * 1024;
/// S3 takes at most 10,000 parts.
const MOST_PARTS: u64 = 9_000;

/// A package that is being received. After each part a checkpoint in the store records the progress, so that
/// a later open of the same upload resumes there, also in another process. Dropping it loses the bytes since
/// the last part; [`keep`](Self::keep) loses nothing.
///
/// Two workers on one upload do no harm: one of them ends with [`StoreError::Busy`]. A complete package is
/// never overwritten, since each attempt has a name of its own.
#[derive(Debug)]
pub struct PackageUpload {
    store: Store,
    about: About,
    algorithms: Vec<Algorithm>,
    waiting: BytesMut,
    received: u64,
    stage: Stage,
    lock: Option<Arc<UploadLock>>,
}

#[derive(Debug)]
enum Stage {
    /// More bytes are to come.
    Receiving(Box<Kept>),
    /// All bytes came.
    Whole { computed: Computed, kept: Box<Kept> },
    /// A part failed, or a call was cancelled.
    Failed,
}

impl Store {
    /// Opens the upload of the package of plan `seq` where it stopped, or a new one. The digests of
    /// `algorithms` are computed as the bytes pass. `largest` is the most bytes that will be accepted: it
    /// decides how large the parts are.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another worker writes to it; otherwise the error of the store.
    pub async fn package_upload(
        &self,
        source: &SourceId,
        seq: Seq,
        algorithms: &[Algorithm],
        largest: u64,
    ) -> Result<PackageUpload, StoreError> {
        let checkpoint = Key::Upload { source: source.clone(), seq };
        let lock = self.lock_upload(source, seq, &checkpoint).await?;
        let found = self.read_checkpoint(&checkpoint).await?;
        let about = About {
            checkpoint,
            tail: Key::UploadTail { source: source.clone(), seq },
            source: source.clone(),
            package: PackageId::fresh(),
            head: PackageHead::default(),
            part_bytes: part_bytes(largest),
        };
        let mut upload = PackageUpload {
            store: self.clone(),
            about,
            algorithms: algorithms.to_vec(),
            waiting: BytesMut::new(),
            received: 0,
            stage: Stage::Failed,
            lock,
        };
        upload.resume(found).await?;
        Ok(upload)
    }

    /// Removes the upload of plan `seq`: its checkpoint and its incomplete parts. A complete package stays.
    /// The caller has settled its outcome, or no longer needs it.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another worker writes to it; otherwise the error of the store.
    pub async fn forget_upload(&self, source: &SourceId, seq: Seq) -> Result<(), StoreError> {
        let checkpoint = Key::Upload { source: source.clone(), seq };
        let lock = self.lock_upload(source, seq, &checkpoint).await?;
        if let Some(Found {
            checkpoint: Some(UploadCheckpoint { package, upload: Some(upload), .. }), ..
        }) = self.read_checkpoint(&checkpoint).await?
        {
            self.abort_parts(&Key::Package { source: source.clone(), package }, &upload).await?;
        }
        self.remove(&Key::UploadTail { source: source.clone(), seq }).await?;
        self.remove(&checkpoint).await?;
        if let Some(lock) = lock {
            lock.remove();
        }
        Ok(())
    }

    async fn lock_upload(
        &self,
        source: &SourceId,
        seq: Seq,
        checkpoint: &Key,
    ) -> Result<Option<Arc<UploadLock>>, StoreError> {
        let Some(local) = self.on_disk() else { return Ok(None) };
        let path = object_store::path::Path::from(format!("uploads/{source}/{}.lock", seq.get()));
        let path = local.file(&path)?;
        match blocking("lock an upload", move || UploadLock::take(&path)).await? {
            Some(lock) => Ok(Some(Arc::new(lock))),
            None => Err(StoreError::Busy { key: checkpoint.to_string() }),
        }
    }
}

/// Bytes of a part of a package of at most `largest` bytes. An upload holds one part in memory.
pub fn part_bytes(largest: u64) -> u64 {
    PART_BYTES.max(largest.div_ceil(MOST_PARTS))
}

impl PackageUpload {
    /// How many bytes came: the offset of the next one.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The response headers of the package.
    pub fn head(&self) -> &PackageHead {
        &self.about.head
    }

    /// Whether all bytes came, and only [`finish`](Self::finish) is left.
    pub fn is_whole(&self) -> bool {
        matches!(self.stage, Stage::Whole { .. })
    }

    /// Bytes of each part but the last.
    pub fn part_bytes(&self) -> u64 {
        self.about.part_bytes
    }

    fn take(&mut self) -> Result<Box<Kept>, StoreError> {
        match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::Receiving(kept) | Stage::Whole { kept, .. } => Ok(kept),
            // The checkpoint records the progress, and the next attempt reads it.
            Stage::Failed => Err(StoreError::Busy { key: self.about.checkpoint.to_string() }),
        }
    }

    fn fresh(&self) -> Kept {
        let hasher = Hasher::new(self.algorithms.iter().copied());
        Kept { hasher, upload: None, parts: Vec::new(), version: None, has_tail: false }
    }

    /// Aborts parts that are no longer of use. If that fails, the bucket's lifecycle rule removes them.
    async fn abort(&self, upload: &str) {
        let key = self.about.key();
        if let Err(error) = self.store.abort_parts(&key, upload).await {
            tracing::debug!(%key, %error, "an upload that is given up stays behind");
        }
    }

    fn unlock(&self) {
        if let Some(lock) = &self.lock {
            lock.remove();
        }
    }
}
