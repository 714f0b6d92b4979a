//! Guards a file against a writer that another one has overtaken: it is replaced only as it was read.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::{ObjectMeta, PutMode, PutOptions, UpdateVersion};

use super::{About, Place, bucket, key};
use crate::PublishError;

/// The version of the file that was read or written last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard(Arc<Mutex<Option<UpdateVersion>>>);

impl Guard {
    /// Notes the version that is there; none if there is no file.
    fn note(&self, version: Option<UpdateVersion>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = version;
    }

    /// How the next version is put.
    fn mode(&self) -> PutMode {
        let version = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        version.map_or(PutMode::Create, PutMode::Update)
    }
}

impl Place {
    /// A small file that is [replaced](Self::replace) later.
    pub(crate) async fn read_to_replace(&self, path: &str) -> Result<Option<Bytes>, PublishError> {
        let Some(guard) = &self.guard else { return self.read(path).await };
        let Some(found) = self.open(path).await? else {
            guard.note(None);
            return Ok(None);
        };
        let ObjectMeta { e_tag, version, .. } = found.meta.clone();
        guard.note(Some(UpdateVersion { e_tag, version }));
        found.bytes().await.map(Some).map_err(|error| self.failed(path, error))
    }

    /// Replaces a small file that was read before. What follows may remove files that the earlier version names, so
    /// this one is on the disk then.
    ///
    /// # Errors
    /// [`PublishError::Busy`] when another process has replaced it meanwhile.
    pub(crate) async fn replace(&self, path: &str, bytes: Bytes, about: &About) -> Result<(), PublishError> {
        let Some(guard) = &self.guard else {
            self.put(path, bytes, about).await?;
            return self.flush_folder(path).await;
        };
        let attributes = bucket::attributes(about);
        let options = PutOptions { mode: guard.mode(), attributes, ..PutOptions::default() };
        match self.objects.put_opts(&key(path), bytes.into(), options).await {
            Ok(written) => {
                guard.note(Some(written.into()));
                Ok(())
            }
            Err(object_store::Error::Precondition { .. } | object_store::Error::AlreadyExists { .. }) => {
                Err(PublishError::Busy(self.name.to_string()))
            }
            Err(error) => Err(self.failed(path, error)),
        }
    }
}
