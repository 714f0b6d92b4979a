//! The notes about uploads, for whoever collects what is left of them.

use futures::TryStreamExt;
use jiff::Timestamp;
use model::{PackageId, Seq, SourceId};

use crate::{Amount, Key, Listed, Store, StoreError};

/// What is left of an upload of a package, whether it goes on or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadLeft {
    /// The plan that the package is fetched for.
    pub seq: Seq,
    /// The package it becomes; none when its note is missing or cannot be read.
    pub package: Option<PackageId>,
    /// What the store calls the parts, where it has a name for them.
    pub(crate) upload: Option<String>,
    /// When it was last heard of, by the store's clock.
    pub modified: Timestamp,
    /// Its note and its tail.
    pub amount: Amount,
}

impl Store {
    /// What is left of the uploads of a Source. As many as packages are being received, so they are given at once.
    ///
    /// # Errors
    /// What the store says.
    pub async fn uploads_left(&self, source: &SourceId) -> Result<Vec<UploadLeft>, StoreError> {
        let mut left: Vec<UploadLeft> = Vec::new();
        let mut listed = self.list_uploads(source);
        while let Some(Listed { key, size, modified }) = listed.try_next().await? {
            let (seq, note) = match &key {
                Key::Upload { seq, .. } => (*seq, self.read_note(&key).await?.and_then(|found| found.note)),
                Key::UploadTail { seq, .. } => (*seq, None),
                _ => continue,
            };
            let at = left.iter().position(|upload| upload.seq == seq).unwrap_or_else(|| {
                let amount = Amount::default();
                left.push(UploadLeft { seq, package: None, upload: None, modified, amount });
                left.len() - 1
            });
            left[at].amount.add(size);
            left[at].modified = left[at].modified.max(modified);
            if let Some(note) = note {
                left[at].package = Some(note.package);
                left[at].upload = note.upload;
            }
        }
        Ok(left)
    }
}
