//! One worker at a time on an upload into a local directory, where no write can depend on the one before it.

use std::fs::TryLockError;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::StoreError;

/// The right to an upload, as long as it is held. The system takes it back from a process that is killed.
#[derive(Debug)]
pub(crate) struct UploadLock {
    path: PathBuf,
    _file: fs::File,
}

impl UploadLock {
    /// The right to the upload whose lock lies at `path`; none while somebody else has it.
    pub(crate) fn take(path: &Path) -> Result<Option<Self>, StoreError> {
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder).map_err(|e| StoreError::of_file("create directory", folder, e))?;
        loop {
            let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path);
            let file = file.map_err(|e| StoreError::of_file("open", path, e))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(StoreError::of_file("lock", path, e)),
            }
            // Between the two steps its holder may have removed it: then it is no longer the one that others find.
            if is_there(&file, path) {
                return Ok(Some(Self { path: path.to_owned(), _file: file }));
            }
        }
    }

    /// Leaves nothing behind: the upload is over.
    pub(crate) fn remove(&self) {
        // What stays is an empty file.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_there(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (held, found) = (file.metadata(), fs::metadata(path));
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
        // Another file has the name now, so both have what they locked; the first has nothing more to do with it.
        let second = UploadLock::take(&path).unwrap().unwrap();
        drop(first);
        assert!(UploadLock::take(&path).unwrap().is_none());
        drop(second);
        assert!(UploadLock::take(&path).unwrap().is_some());
    }
}
