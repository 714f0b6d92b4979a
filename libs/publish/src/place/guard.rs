//! Guards files against a writer that another one has overtaken: they are replaced only as they were read.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::{ObjectMeta, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};

use super::{About, Place, bucket, key};
use crate::PublishError;

/// The version of the state of the publication that was read or written last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard(Arc<Mutex<Option<UpdateVersion>>>);

impl Guard {
    /// Notes the version that is there; none if there is no file.
    fn note(&self, version: Option<UpdateVersion>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = version;
    }

    /// The version that was read or written last.
    fn version(&self) -> Option<UpdateVersion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The version of a file.
pub(super) fn version_of(meta: &ObjectMeta) -> UpdateVersion {
    UpdateVersion { e_tag: meta.e_tag.clone(), version: meta.version.clone() }
}

/// What tells a version of a file from all others.
pub(crate) fn tag(version: &UpdateVersion) -> Option<String> {
    version.e_tag.clone().or_else(|| version.version.clone())
}

impl Place {
    /// A small file that is [replaced](Self::replace) later.
    pub(crate) async fn read_to_replace(&self, path: &str) -> Result<Option<Bytes>, PublishError> {
        let Some(guard) = &self.guard else { return self.read(path).await };
        let Some(found) = self.open(path).await? else {
            guard.note(None);
            return Ok(None);
        };
        guard.note(Some(version_of(&found.meta)));
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
        let written = self.put_over(path, bytes, about, guard.version()).await?;
        let written = written.ok_or_else(|| PublishError::Busy(self.name.to_string()))?;
        guard.note(Some(written));
        Ok(())
    }

    /// The version of a file that is there.
    pub(crate) async fn version(&self, path: &str) -> Result<Option<UpdateVersion>, PublishError> {
        match self.objects.head(&key(path)).await {
            Ok(meta) => Ok(Some(version_of(&meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// Writes a small file of a bucket over this version of it; without one, as a new file. Returns the version that
    /// is written. None, and nothing is written, where another version is there.
    pub(crate) async fn put_over(
        &self,
        path: &str,
        bytes: Bytes,
        about: &About,
        version: Option<UpdateVersion>,
    ) -> Result<Option<UpdateVersion>, PublishError> {
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, attributes: bucket::attributes(about), ..PutOptions::default() };
        self.small.writing(path);
        let written = self.objects.put_opts(&key(path), bytes.into(), options).await;
        self.small.written(path);
        match written {
            Ok(written) => Ok(Some(written.into())),
            Err(object_store::Error::Precondition { .. } | object_store::Error::AlreadyExists { .. }) => {
                Ok(None)
            }
            Err(error) => Err(self.failed(path, error)),
        }
    }
}
