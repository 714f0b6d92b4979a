//! Writes files of a place, and removes them.

use std::convert::Infallible;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use object_store::ObjectStoreExt as _;
use tempfile::NamedTempFile;

use super::{Cause, Kind, Place, key};
use crate::PublishError;

/// What a server tells of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// Its media type.
    pub(crate) media_type: Option<String>,
    /// Its Content-Encoding.
    pub(crate) encoding: Option<String>,
    /// Its Last-Modified, where the place can keep that.
    pub(crate) modified: Option<Timestamp>,
    /// Whether it is for the publisher alone, since it has a secret.
    pub(crate) is_private: bool,
    /// Whether it is on the disk once it is written. After a loss of power, a name that is replaced has the earlier
    /// file or this one, and whole.
    pub(crate) is_lasting: bool,
}

/// What is told of a file that has what nothing else tells.
pub(crate) fn lasting() -> About {
    About { is_lasting: true, ..About::default() }
}

/// What a server tells of a document.
pub(crate) fn xml() -> About {
    About { media_type: Some("application/xml".to_owned()), ..About::default() }
}

impl Place {
    /// Writes bytes that are in memory.
    pub(crate) async fn put(&self, path: &str, bytes: Bytes, about: &About) -> Result<(), PublishError> {
        let pieces = stream::iter([Ok::<_, Infallible>(bytes)]).boxed();
        let Ok(()) = self.put_pieces(path, pieces, about).await?;
        Ok(())
    }

    /// Writes a finished temporary file.
    pub(crate) async fn put_file(
        &self,
        path: &str,
        file: NamedTempFile,
        about: &About,
    ) -> Result<(), PublishError> {
        self.small.writing(path);
        let written = match &self.kind {
            Kind::Directory(directory) => directory.adopt(path, file, about).await.map_err(Into::into),
            Kind::Bucket(bucket) => bucket.upload(path, file, about).await,
        };
        self.small.written(path);
        written.map_err(|error: Cause| self.failed(path, error))
    }

    /// Writes verified bytes as they come. The inner error is that of the bytes: then the place is as before.
    pub(crate) async fn put_pieces<E: Send + 'static>(
        &self,
        path: &str,
        pieces: BoxStream<'static, Result<Bytes, E>>,
        about: &About,
    ) -> Result<Result<(), E>, PublishError> {
        self.small.writing(path);
        let written = match &self.kind {
            Kind::Directory(directory) => directory.put(path, pieces, about).await.map_err(Into::into),
            Kind::Bucket(bucket) => bucket.put(path, pieces, about).await.map_err(Into::into),
        };
        self.small.written(path);
        written.map_err(|error: Cause| self.failed(path, error))
    }

    /// Removes a file; a missing one is no error.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), PublishError> {
        self.small.writing(path);
        let removed: Result<(), Cause> = match &self.kind {
            Kind::Directory(directory) => directory.remove(path).await.map_err(Into::into),
            Kind::Bucket(_) => match self.objects.delete(&key(path)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            },
        };
        self.small.written(path);
        removed.map_err(|error| self.failed(path, error))
    }

    /// Waits until all that was written is on the disk.
    pub(crate) async fn flush(&self) -> Result<(), PublishError> {
        match &self.kind {
            Kind::Directory(directory) => directory.flush().await.map_err(|error| self.failed("", error)),
            Kind::Bucket(_) => Ok(()),
        }
    }

    /// Waits until the name of a file is on the disk.
    pub(super) async fn flush_folder(&self, path: &str) -> Result<(), PublishError> {
        match &self.kind {
            Kind::Directory(directory) => {
                directory.flush_folder(path).await.map_err(|error| self.failed(path, error))
            }
            Kind::Bucket(_) => Ok(()),
        }
    }

    /// A temporary file, on the disk of the place if it has one.
    pub(crate) fn temporary(&self) -> Result<NamedTempFile, PublishError> {
        match &self.kind {
            Kind::Directory(directory) => directory.temporary(),
            Kind::Bucket(_) => NamedTempFile::new(),
        }
        .map_err(|error| PublishError::place(&self.name, error))
    }
}
