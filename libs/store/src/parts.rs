//! Parts of an upload: a multipart upload on S3, a growing file on a local store.

use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use fs_err as fs;
use object_store::PutMultipartOptions;
use object_store::multipart::PartId;
use object_store::path::Path;

use crate::backend::{Backend, Bucket, Local};
use crate::error::AtFile;
use crate::failure_kind::says;
use crate::files::{blocking, create_folder_of, flush_folder};
use crate::upload_lock::UploadLock;
use crate::{Key, Operation, Store, StoreError};

/// An upload in progress.
#[derive(Debug, Clone)]
pub(crate) struct PartsOf {
    /// The object it will be.
    pub(crate) key: Key,
    /// The store's id of the upload; empty for a file.
    pub(crate) upload: String,
    /// Bytes of each part but the last.
    pub(crate) part_bytes: u64,
}

impl Store {
    /// Begins an upload.
    pub(crate) async fn begin_parts(&self, key: &Key) -> Result<String, StoreError> {
        match self.backend() {
            Backend::Bucket(Bucket { parts, .. }) => {
                let options = PutMultipartOptions::from(self.attributes(key));
                let upload = parts.create_multipart_opts(&key.path(), options).await;
                self.noted(key, upload)
            }
            Backend::Local(local) => {
                let path = growing(local, key)?;
                let begin = move || {
                    create_folder_of(&path)?;
                    fs::File::create(&path).at_file("create", &path)?;
                    Ok(String::new())
                };
                self.noted_file(blocking("begin an upload", begin).await)
            }
        }
    }

    /// Adds or replaces a part. Returns what is needed to complete the upload. The write lock of the file is
    /// held until it is written, even if the caller stops waiting.
    pub(crate) async fn put_part(
        &self,
        of: &PartsOf,
        number: usize,
        bytes: Bytes,
        lock: Option<Arc<UploadLock>>,
    ) -> Result<String, StoreError> {
        match self.backend() {
            Backend::Bucket(Bucket { parts, .. }) => {
                let part = parts.put_part(&of.key.path(), &of.upload, number, bytes.into()).await;
                Ok(self.noted(&of.key, part)?.content_id)
            }
            Backend::Local(local) => {
                let path = growing(local, &of.key)?;
                let at = number as u64 * of.part_bytes;
                let key = of.key.to_string();
                let root = self.root().to_owned();
                let fsync = local.fsync;
                let write = move || {
                    let mut file = open_growing(&path, key, root)?;
                    let written = file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(&bytes));
                    let flushed = written.and_then(|()| if fsync { file.sync_data() } else { Ok(()) });
                    drop(lock);
                    flushed.at_file("write", &path)?;
                    Ok(String::new())
                };
                self.noted_file(blocking("write a part", write).await)
            }
        }
    }

    /// Completes the upload: the parts become an object of `length` bytes.
    pub(crate) async fn complete_parts(
        &self,
        of: &PartsOf,
        parts: Vec<String>,
        length: u64,
    ) -> Result<(), StoreError> {
        match self.backend() {
            Backend::Bucket(bucket) => {
                let parts = parts.into_iter().map(|content_id| PartId { content_id }).collect();
                let done = bucket.parts.complete_multipart(&of.key.path(), &of.upload, parts).await;
                self.noted(&of.key, done).map(drop)
            }
            Backend::Local(local) => {
                let from = growing(local, &of.key)?;
                let to = local.file(&of.key.path())?;
                let key = of.key.to_string();
                let root = self.root().to_owned();
                let fsync = local.fsync;
                let rename = move || {
                    let file = open_growing(&from, key, root)?;
                    // A part that was written but not recorded may be behind the end.
                    file.set_len(length).at_file("cut", &from)?;
                    let folder = create_folder_of(&to)?;
                    if fsync {
                        file.sync_all().at_file("flush", &from)?;
                    }
                    fs::rename(&from, &to).at_file("rename", &from)?;
                    if fsync {
                        flush_folder(folder)?;
                    }
                    Ok(())
                };
                self.noted_file(blocking("store a package", rename).await)
            }
        }
    }

    /// Aborts an upload. One that is already gone is no error.
    pub(crate) async fn abort_parts(&self, key: &Key, upload: &str) -> Result<(), StoreError> {
        let aborted = match self.backend() {
            Backend::Bucket(Bucket { parts, .. }) => {
                let aborted = parts.abort_multipart(&key.path(), &upload.to_owned()).await;
                aborted.map_err(|e| self.part_error(key, e))
            }
            Backend::Local(local) => {
                let path = growing(local, key)?;
                let remove = move || match fs::remove_file(&path) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
                    removed => removed.at_file("remove", &path),
                };
                blocking("remove an upload", remove).await
            }
        };
        match aborted {
            Err(StoreError::NotFound { .. }) => Ok(()),
            aborted => aborted,
        }
    }

    fn noted<T>(&self, key: &Key, result: object_store::Result<T>) -> Result<T, StoreError> {
        let result = self.health().note(Operation::Put, || format!("{}/{key}", self.root()), result);
        result.map_err(|e| self.part_error(key, e))
    }

    fn part_error(&self, key: &Key, error: object_store::Error) -> StoreError {
        // The message of the store in memory.
        if says(&error, &["MultipartUpload not found"]) {
            return StoreError::NotFound { key: key.to_string(), root: self.root().to_owned() };
        }
        StoreError::of_object(self.root(), key, error)
    }

    fn noted_file<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Ok(_) => self.health().succeeded(true),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => self.health().failed_with(error),
        }
        result
    }
}

/// The file that grows until it is the object.
fn growing(local: &Local, key: &Key) -> Result<PathBuf, StoreError> {
    local.file(&Path::from(format!("{}.part", key.to_string().replacen("packages/", "uploads/", 1))))
}

fn open_growing(path: &std::path::Path, key: String, root: String) -> Result<fs::File, StoreError> {
    match fs::OpenOptions::new().write(true).open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(StoreError::NotFound { key, root }),
        opened => opened.at_file("open", path),
    }
}
