//! A lock per upload into a local directory, which has no conditional writes.

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::{StoreError, files};

/// The lock of an upload. The system releases it when a process is killed.
#[derive(Debug)]
pub(crate) struct UploadLock {
    path: PathBuf,
    _file: fs::File,
}

impl UploadLock {
    /// Takes the upload whose lock file is at `path`. None while another worker holds it.
    pub(crate) fn take(path: &Path) -> Result<Option<Self>, StoreError> {
        loop {
            let Some(file) = files::lock(path)? else { return Ok(None) };
            // Its previous holder may have removed the file between the two steps: other workers would not
            // find it.
            if is_there(&file, path) {
                return Ok(Some(Self { path: path.to_owned(), _file: file }));
            }
        }
    }

    /// Removes the lock file: the upload is over.
    pub(crate) fn remove(&self) {
        // If that fails, an empty file stays.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_there(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let held = file.metadata();
    let found = fs::metadata(path);
    matches!((held, found), (Ok(held), Ok(found)) if (held.dev(), held.ino()) == (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn is_there(_: &fs::File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_right_and_a_removed_lock_is_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/1.lock");
        let first = UploadLock::take(&path).unwrap().unwrap();
        assert!(UploadLock::take(&path).unwrap().is_none());
        first.remove();
        // Another file has the name now, so both hold a lock; the first one has nothing more to do.
        let second = UploadLock::take(&path).unwrap().unwrap();
        drop(first);
        assert!(UploadLock::take(&path).unwrap().is_none());
        drop(second);
        assert!(UploadLock::take(&path).unwrap().is_some());
    }
}
