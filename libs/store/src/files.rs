//! Steps on local files that several modules take.

use std::fs::TryLockError;
use std::path::Path;

use fs_err as fs;

use crate::StoreError;
use crate::error::AtFile;

/// Runs file operations on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    action: &'static str,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|e| StoreError::of_task(action, e))?
}

/// Creates the folder of a file, and its parents.
pub(crate) fn create_folder_of(file: &Path) -> Result<&Path, StoreError> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder).at_file("create directory", folder)?;
    Ok(folder)
}

/// Flushes a folder, so that the names of its new files survive a loss of power.
pub(crate) fn flush_folder(folder: &Path) -> Result<(), StoreError> {
    fs::File::open(folder).and_then(|folder| folder.sync_all()).at_file("flush directory", folder)
}

/// Locks the file at `path`, which is created if missing. None while another process holds the lock. The system
/// releases it when a process is killed.
pub(crate) fn lock(path: &Path) -> Result<Option<fs::File>, StoreError> {
    create_folder_of(path)?;
    let file =
        fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).at_file("open", path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(StoreError::of_file("lock", path, e)),
    }
}
