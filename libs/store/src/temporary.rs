//! Temporary files that become ordinary ones.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use jiff::{SignedDuration, Timestamp};
use tempfile::{Builder, NamedTempFile};

use crate::error::AtFile;
use crate::{Amount, StoreError};

/// Prefix of our temporary files: other users may share the directory.
pub(crate) const PREFIX: &str = "thresher-tmp-";

/// The age from which a temporary file counts as left behind by a killed process.
const ABANDONED_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Who may read the file: its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Only its owner: other users share the directory.
    Owner,
    /// All readers that the umask allows: the file will become one of this process's ordinary files.
    Everyone,
}

/// A file in `directory`, which is created if missing. The file is removed when dropped.
pub(crate) fn create_in(directory: &Path, readers: Readers) -> Result<NamedTempFile, StoreError> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    if readers == Readers::Everyone {
        allow_anybody(&mut builder);
    }
    match builder.tempfile_in(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(directory).at_file("create directory", directory)?;
            builder.tempfile_in(directory)
        }
        other => other,
    }
    .at_file("create a file in", directory)
}

/// Counts temporary files of killed processes, and removes them on request. Those of living processes are younger.
pub(crate) fn abandoned(directories: &[PathBuf], remove: bool) -> Amount {
    let mut found = Amount::default();
    for (path, about) in directories.iter().flat_map(|directory| of_ours(directory)) {
        let modified = about.modified().ok().and_then(|t| Timestamp::try_from(t).ok());
        let age = modified.map(|modified| Timestamp::now().duration_since(modified));
        let is_abandoned = age.is_some_and(|age| age > ABANDONED_AFTER);
        // A file that cannot be removed now is found by the next call.
        if is_abandoned && (!remove || fs::remove_file(&path).is_ok()) {
            found.add(about.len());
        }
    }
    found
}

/// Our temporary files in a directory, of any process.
pub(crate) fn of_ours(directory: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)).filter_map(|entry| {
        // A file that is gone meanwhile is skipped.
        let about = entry.metadata().ok()?;
        Some((entry.path(), about))
    })
}

#[cfg(unix)]
fn allow_anybody(builder: &mut Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    // The process's umask still applies.
    builder.permissions(std::fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn allow_anybody(_: &mut Builder<'_, '_>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_files_of_ours_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let now = Timestamp::now();
        let yesterday = now - ABANDONED_AFTER - SignedDuration::from_mins(1);
        let make = |name: &str, modified: Timestamp| {
            let path = directory.path().join(name);
            fs::File::create(&path).unwrap().file().set_modified(modified.into()).unwrap();
            path
        };
        let old = make("thresher-tmp-old", yesterday);
        let young = make("thresher-tmp-young", now);
        let foreign = make("old", yesterday);
        let directories = [directory.path().to_owned(), directory.path().join("absent")];
        assert_eq!(abandoned(&directories, false).objects, 1);
        assert!(old.exists());
        abandoned(&directories, true);
        assert!(!old.exists() && young.exists() && foreign.exists());
    }
}
