//! Parts of an upload: a multipart upload on S3, a growing file on a local store.

use std::fmt;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use fs_err as fs;
use object_store::PutMultipartOptions;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;

use crate::error::says;
use crate::open::Local;
use crate::spool::blocking;
use crate::upload_lock::UploadLock;
use crate::{Key, Operation, Store, StoreError};

/// Where the parts of an upload are stored.
#[derive(Clone)]
pub(crate) enum Parts {
    /// Into an upload that the store keeps until it is completed.
    Multipart(Arc<dyn MultipartStore>),
    /// In a file next to the checkpoints, renamed when it is complete.
    File,
}

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

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Multipart(_) => "Multipart",
            Self::File => "File",
        })
    }
}

impl Store {
    /// Begins an upload.
    pub(crate) async fn begin_parts(&self, key: &Key) -> Result<String, StoreError> {
        match (self.parts(), self.on_disk()) {
            (Parts::Multipart(parts), _) => {
                let options = PutMultipartOptions::from(self.attributes(key));
                let upload = parts.create_multipart_opts(&key.path(), options).await;
                self.noted(key, upload)
            }
            (Parts::File, Some(local)) => {
                let path = growing(local, key)?;
                let begin = move || {
                    let folder = path.parent().unwrap_or(&path);
                    fs::create_dir_all(folder)
                        .map_err(|e| StoreError::of_file("create directory", folder, e))?;
                    fs::File::create(&path).map_err(|e| StoreError::of_file("create", &path, e))?;
                    Ok(String::new())
                };
                self.noted_file(blocking("begin an upload", begin).await)
            }
            (Parts::File, None) => Err(self.without_parts()),
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
        match (self.parts(), self.on_disk()) {
            (Parts::Multipart(parts), _) => {
                let part = parts.put_part(&of.key.path(), &of.upload, number, bytes.into()).await;
                Ok(self.noted(&of.key, part)?.content_id)
            }
            (Parts::File, Some(local)) => {
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
                    flushed.map_err(|e| StoreError::of_file("write", &path, e))?;
                    Ok(String::new())
                };
                self.noted_file(blocking("write a part", write).await)
            }
            (Parts::File, None) => Err(self.without_parts()),
        }
    }

    /// Completes the upload: the parts become an object of `length` bytes.
    pub(crate) async fn complete_parts(
        &self,
        of: &PartsOf,
        parts: Vec<String>,
        length: u64,
    ) -> Result<(), StoreError> {
        match (self.parts(), self.on_disk()) {
            (Parts::Multipart(store), _) => {
                let parts = parts.into_iter().map(|content_id| PartId { content_id }).collect();
                let done = store.complete_multipart(&of.key.path(), &of.upload, parts).await;
                self.noted(&of.key, done).map(drop)
            }
            (Parts::File, Some(local)) => {
                let from = growing(local, &of.key)?;
                let to = local.objects.path_to_filesystem(&of.key.path());
                let to = to.map_err(|e| StoreError::of_object(self.root(), &of.key, e))?;
                let key = of.key.to_string();
                let root = self.root().to_owned();
                let fsync = local.fsync;
                let rename = move || {
                    let file = open_growing(&from, key, root)?;
                    // A part that was written but not recorded may be behind the end.
                    file.set_len(length).map_err(|e| StoreError::of_file("cut", &from, e))?;
                    let folder = to.parent().unwrap_or(&to);
                    fs::create_dir_all(folder)
                        .map_err(|e| StoreError::of_file("create directory", folder, e))?;
                    if fsync {
                        file.sync_all().map_err(|e| StoreError::of_file("flush", &from, e))?;
                    }
                    fs::rename(&from, &to).map_err(|e| StoreError::of_file("rename", &from, e))?;
                    if fsync {
                        let flush = fs::File::open(folder).and_then(|folder| folder.sync_all());
                        flush.map_err(|e| StoreError::of_file("flush directory", folder, e))?;
                    }
                    Ok(())
                };
                self.noted_file(blocking("store a package", rename).await)
            }
            (Parts::File, None) => Err(self.without_parts()),
        }
    }

    /// Aborts an upload. One that is already gone is no error.
    pub(crate) async fn abort_parts(&self, key: &Key, upload: &str) -> Result<(), StoreError> {
        let aborted = match (self.parts(), self.on_disk()) {
            (Parts::Multipart(parts), _) => {
                let aborted = parts.abort_multipart(&key.path(), &upload.to_owned()).await;
                aborted.map_err(|e| self.part_error(key, e))
            }
            (Parts::File, Some(local)) => {
                let path = growing(local, key)?;
                let remove = move || match fs::remove_file(&path) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
                    removed => removed.map_err(|e| StoreError::of_file("remove", &path, e)),
                };
                blocking("remove an upload", remove).await
            }
            (Parts::File, None) => Ok(()),
        };
        match aborted {
            Err(StoreError::NotFound { .. }) => Ok(()),
            aborted => aborted,
        }
    }

    fn noted<T>(&self, key: &Key, result: object_store::Result<T>) -> Result<T, StoreError> {
        let result = self.board().note(Operation::Put, || format!("{}/{key}", self.root()), result);
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
            Ok(_) => self.board().succeeded(true),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => self.board().failed_with(error),
        }
        result
    }

    fn without_parts(&self) -> StoreError {
        StoreError::Unsupported { root: self.root().to_owned(), what: "uploads in parts".into() }
    }
}

/// The file that grows until it is the object.
fn growing(local: &Local, key: &Key) -> Result<PathBuf, StoreError> {
    let path = Path::from(format!("{}.part", key.to_string().replacen("packages/", "uploads/", 1)));
    local.objects.path_to_filesystem(&path).map_err(|e| StoreError::of_object("", &path, e))
}

fn open_growing(path: &std::path::Path, key: String, root: String) -> Result<fs::File, StoreError> {
    match fs::OpenOptions::new().write(true).open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(StoreError::NotFound { key, root }),
        opened => opened.map_err(|e| StoreError::of_file("open", path, e)),
    }
}
