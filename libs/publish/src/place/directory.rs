//! A directory: a file is written aside, and renamed into its place.

use std::fs::{Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fs_err as fs;
use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use tempfile::NamedTempFile;

use super::{About, OWN};
use crate::PublishError;

/// Bodies up to this size are written in one step.
const SMALL_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn create(root: &Path) -> Result<Self, PublishError> {
        fs::create_dir_all(root.join(OWN).join("tmp"))
            .map_err(|error| PublishError::place(&root.display().to_string(), error))?;
        Ok(Self { root: root.to_owned() })
    }

    pub(super) fn temporary(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in(self.root.join(OWN).join("tmp"))
    }

    /// Opens a file, if it is there.
    pub(super) async fn open(&self, path: &str) -> io::Result<Option<std::fs::File>> {
        let path = self.root.join(path);
        blocking(move || match fs::File::open(path) {
            Ok(file) => Ok(Some(file.into_file())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Gives a temporary file its name.
    pub(super) async fn adopt(&self, path: &str, file: NamedTempFile, about: &About) -> io::Result<()> {
        let to = self.root.join(path);
        let about = about.clone();
        blocking(move || place(file, &to, &about)).await
    }

    pub(super) async fn put<E>(
        &self,
        path: &str,
        mut pieces: BoxStream<'static, Result<Bytes, E>>,
        about: &About,
    ) -> io::Result<Result<(), E>> {
        let mut held = Vec::new();
        let mut file = None;
        loop {
            match pieces.try_next().await {
                Ok(Some(piece)) => held.extend_from_slice(&piece),
                Ok(None) => break,
                Err(error) => return Ok(Err(error)),
            }
            if held.len() >= SMALL_BYTES {
                file = Some(self.written(file, std::mem::take(&mut held)).await?);
            }
        }
        let file = self.written(file, held).await?;
        self.adopt(path, file, about).await.map(Ok)
    }

    async fn written(&self, file: Option<NamedTempFile>, bytes: Vec<u8>) -> io::Result<NamedTempFile> {
        let directory = self.clone();
        blocking(move || {
            let mut file = file.map_or_else(|| directory.temporary(), Ok)?;
            file.write_all(&bytes)?;
            Ok(file)
        })
        .await
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Removes a file, if it is there.
    pub(super) async fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.root.join(path);
        blocking(move || match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
        .await
    }

    /// None while another process holds the lock. The system releases it when a process is killed.
    pub(super) fn lock(&self) -> io::Result<Option<fs::File>> {
        let path = self.root.join(OWN).join("publication.lock");
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) async fn flush(&self) -> io::Result<()> {
        let root = self.root.clone();
        blocking(move || flush(&root)).await
    }

    /// Waits until the name of a file is on the disk.
    pub(super) async fn flush_folder(&self, path: &str) -> io::Result<()> {
        let path = self.root.join(path);
        blocking(move || flush_folder(&path)).await
    }
}

fn place(file: NamedTempFile, to: &Path, about: &About) -> io::Result<()> {
    let &About { modified, is_private, is_lasting, .. } = about;
    // A temporary file is private to its owner; others are meant to be served.
    if !is_private {
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    }
    if let Some(modified) = modified {
        let seconds = u64::try_from(modified.as_second()).unwrap_or_default();
        file.as_file().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))?;
    }
    let is_new = is_lasting && !to.try_exists()?;
    if is_lasting {
        // Else its name may be on the disk before its bytes: after a loss of power it would be empty.
        wait_for(file.as_file())?;
    }
    match file.persist(to) {
        Ok(_) => {}
        Err(error) if error.error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
                if is_new {
                    flush_folder(folder)?;
                }
            }
            error.file.persist(to).map_err(|error| error.error)?;
        }
        Err(error) => return Err(error.error),
    }
    if is_new { flush_folder(to) } else { Ok(()) }
}

/// Waits until the name of a file, or of a folder, is on the disk.
fn flush_folder(of: &Path) -> io::Result<()> {
    let Some(folder) = of.parent() else { return Ok(()) };
    wait_for(fs::File::open(folder)?.file())
}

/// Waits until what was written to an open file, or folder, is on the disk.
fn wait_for(open: &std::fs::File) -> io::Result<()> {
    #[cfg(all(test, target_os = "linux"))]
    tests::note(open);
    open.sync_all()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(target_os = "linux")]
fn flush(root: &Path) -> io::Result<()> {
    let directory = fs::File::open(root)?;
    Ok(nix::unistd::syncfs(directory.file())?)
}

#[cfg(not(target_os = "linux"))]
fn flush(_: &Path) -> io::Result<()> {
    nix::unistd::sync();
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
