//! Lists upload checkpoints, so that gc can remove orphan uploads.

use futures::TryStreamExt;
use jiff::Timestamp;
use model::{PackageId, Seq, SourceId};

use crate::{Amount, Key, Listed, Store, StoreError};

/// The objects of a package upload, active or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanUpload {
    /// The plan that the package is fetched for.
    pub seq: Seq,
    /// The package it becomes; none when its checkpoint is missing or unreadable.
    pub package: Option<PackageId>,
    /// The store's id of its parts, where it has one.
    pub(crate) upload: Option<String>,
    /// When it was last written, by the store's clock.
    pub modified: Timestamp,
    /// Its checkpoint and its tail.
    pub amount: Amount,
}

impl Store {
    /// The uploads of a Source. As many as packages are being received, so they are returned at once.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn uploads_left(&self, source: &SourceId) -> Result<Vec<OrphanUpload>, StoreError> {
        let mut left: Vec<OrphanUpload> = Vec::new();
        let mut listed = self.list_uploads(source);
        while let Some(Listed { key, size, modified }) = listed.try_next().await? {
            let (seq, checkpoint) = match &key {
                Key::Upload { seq, .. } => {
                    (*seq, self.read_checkpoint(&key).await?.and_then(|found| found.checkpoint))
                }
                Key::UploadTail { seq, .. } => (*seq, None),
                _ => continue,
            };
            let at = left.iter().position(|upload| upload.seq == seq).unwrap_or_else(|| {
                let amount = Amount::default();
                left.push(OrphanUpload { seq, package: None, upload: None, modified, amount });
                left.len() - 1
            });
            left[at].amount.add(size);
            left[at].modified = left[at].modified.max(modified);
            if let Some(checkpoint) = checkpoint {
                left[at].package = Some(checkpoint.package);
                left[at].upload = checkpoint.upload;
            }
        }
        Ok(left)
    }
}
