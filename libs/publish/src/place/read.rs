//! Reads files of a place, and lists them.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Range;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetResult, ObjectMeta, ObjectStoreExt as _, UpdateVersion};

use super::guard::version_of;
use super::{Kind, OWN, Place, key};
use crate::PublishError;

impl Place {
    /// A file of it, with its length and times.
    ///
    /// # Errors
    /// [`PublishError::Place`] when the place fails. A missing file is none.
    pub async fn open(&self, path: &str) -> Result<Option<GetResult>, PublishError> {
        match self.objects.get(&key(path)).await {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// A range of a file, with its length and times.
    ///
    /// # Errors
    /// [`PublishError::Place`] when the place fails. A missing file is none.
    pub async fn open_range(&self, path: &str, range: Range<u64>) -> Result<Option<GetResult>, PublishError> {
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        match self.objects.get_opts(&key(path), options).await {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// The length and times of a file.
    pub(crate) async fn head(&self, path: &str) -> Result<Option<ObjectMeta>, PublishError> {
        match self.objects.head(&key(path)).await {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// A small file of it, in memory.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<Bytes>, PublishError> {
        let Some(found) = self.open(path).await? else { return Ok(None) };
        found.bytes().await.map(Some).map_err(|error| self.failed(path, error))
    }

    /// A file as it is now, to be read from its beginning, on the disk of this machine. A missing file is none.
    pub(crate) async fn copy(&self, path: &str) -> Result<Option<File>, PublishError> {
        Ok(self.copy_version(path).await?.map(|(file, _)| file))
    }

    /// The same with the version of the file, where the place is a bucket.
    pub(crate) async fn copy_version(
        &self,
        path: &str,
    ) -> Result<Option<(File, Option<UpdateVersion>)>, PublishError> {
        if let Kind::Directory(directory) = &self.kind {
            // A file is replaced as a whole, so an open one stays as it is.
            let file = directory.open(path).await.map_err(|error| self.failed(path, error))?;
            return Ok(file.map(|file| (file, None)));
        }
        let Some(found) = self.open(path).await? else { return Ok(None) };
        let version = version_of(&found.meta);
        let mut file = self.temporary()?.into_file();
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.try_next().await.map_err(|error| self.failed(path, error))? {
            file.write_all(&piece)?;
        }
        file.seek(SeekFrom::Start(0))?;
        Ok(Some((file, Some(version))))
    }

    /// The paths of at most so many files of a folder.
    pub(crate) async fn list(&self, folder: &str, most: usize) -> Result<Vec<String>, PublishError> {
        let mut files = self.objects.list(Some(&key(folder))).take(most);
        let mut paths = Vec::new();
        while let Some(file) = files.next().await {
            paths.push(file.map_err(|error| self.failed(folder, error))?.location.to_string());
        }
        Ok(paths)
    }

    /// Looks at the path of each file of a folder.
    pub(crate) async fn each(&self, folder: &str, mut look: impl FnMut(String)) -> Result<(), PublishError> {
        let mut paths = self.paths(folder);
        while let Some(path) = paths.try_next().await? {
            look(path);
        }
        Ok(())
    }

    /// The path of each file of a folder.
    pub(crate) fn paths<'p>(&'p self, folder: &'p str) -> BoxStream<'p, Result<String, PublishError>> {
        let files = self.objects.list(Some(&key(folder)));
        let paths = files.map_ok(|file| file.location.to_string());
        paths.map_err(move |error| self.failed(folder, error)).boxed()
    }

    /// Whether it has any file that is not the publisher's own.
    pub(crate) async fn has_others(&self) -> Result<bool, PublishError> {
        let is_own = |path: &Key| path.as_ref().strip_prefix(OWN).is_some_and(|rest| rest.starts_with('/'));
        let mut files = self.objects.list(None);
        while let Some(file) = files.next().await {
            if !is_own(&file.map_err(|error| self.failed("", error))?.location) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
