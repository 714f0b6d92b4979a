//! Orphans of killed processes: files that never became objects.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fs_err as fs;
use jiff::Timestamp;
use model::PackageId;

use crate::open::Local;
use crate::spool::blocking;
use crate::{Amount, DATA_DIRECTORY, Store, StoreError, temporary, view};

/// The folders of our own objects. The catalogs' database removes its own orphans.
const FOLDERS: [&str; 5] = ["bitstreams", "packs", "packages", "uploads", "sources"];

/// Uploads that are still in use.
#[derive(Debug, Clone, Default)]
pub struct Growing {
    /// Packages that are being received.
    pub packages: HashSet<PackageId>,
    /// The store's ids of their multipart uploads.
    pub uploads: HashSet<String>,
}

impl Growing {
    /// Adds an upload that is still in use.
    pub fn add(&mut self, upload: &crate::OrphanUpload) {
        self.packages.extend(upload.package);
        self.uploads.extend(upload.upload.clone());
    }
}

impl Store {
    /// Counts the temporary files of killed processes: those that are removed when the store is opened for
    /// writing.
    ///
    /// # Errors
    /// Only when the runtime shuts down.
    pub async fn temporaries(&self) -> Result<Amount, StoreError> {
        let directories = self.temporary_directories();
        blocking("look for temporary files", move || Ok(all_temporaries(&directories, false))).await
    }

    fn temporary_directories(&self) -> Vec<PathBuf> {
        let view = self.on_disk().map(|local| local.directory.join(DATA_DIRECTORY).join(view::TEMPORARY));
        std::iter::once(self.spool_directory().to_owned()).chain(view).collect()
    }

    /// Counts what killed processes left behind before `young`, and removes it on request. These are
    /// temporary files, half-written files, and parts of abandoned uploads.
    ///
    /// # Errors
    /// The error of the store; some of it may be removed by then.
    pub async fn orphans(
        &self,
        young: Timestamp,
        growing: Growing,
        remove: bool,
    ) -> Result<Amount, StoreError> {
        let directories = self.temporary_directories();
        let data = self.on_disk().map(|Local { directory, .. }| directory.join(DATA_DIRECTORY));
        if data.is_none() {
            let uploads = self.unfinished_uploads(young, &growing, remove).await?;
            let work = move || Ok(all_temporaries(&directories, remove));
            let mut left = blocking("look for temporary files", work).await?;
            left += uploads;
            return Ok(left);
        }
        let work = move || {
            let mut left = all_temporaries(&directories, remove);
            for folder in data.iter().flat_map(|data| FOLDERS.map(|folder| data.join(folder))) {
                unfinished(&folder, young, &growing, remove, &mut left);
            }
            Ok(left)
        };
        blocking("look for what is left of killed processes", work).await
    }
}

fn all_temporaries(directories: &[PathBuf], remove: bool) -> Amount {
    let mut all = Amount::default();
    directories.iter().for_each(|directory| all += temporaries(directory, remove));
    all
}

fn temporaries(directory: &Path, remove: bool) -> Amount {
    let mut found = Amount::default();
    temporary::abandoned(directory, |path, bytes| {
        // A file that cannot be removed now is found by the next call.
        if !remove || fs::remove_file(path).is_ok() {
            found.add(bytes);
        }
    });
    found
}

/// Searches a folder and its subfolders.
fn unfinished(folder: &Path, young: Timestamp, growing: &Growing, remove: bool, left: &mut Amount) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            unfinished(&path, young, growing, remove, left);
            continue;
        }
        let modified = about.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        let is_old = modified.is_some_and(|modified| modified < young);
        let name = entry.file_name();
        if is_old
            && name.to_str().is_some_and(|name| is_unfinished(name, growing))
            && (!remove || fs::remove_file(&path).is_ok())
        {
            left.add(about.len());
        }
    }
}

/// Whether a file never became an object: `<name>#<number>` is being written, `<package>.part` grows.
fn is_unfinished(name: &str, growing: &Growing) -> bool {
    if let Some((_, number)) = name.rsplit_once('#') {
        return !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    }
    let package = name.strip_suffix(".part").and_then(|package| package.parse().ok());
    package.is_some_and(|package| !growing.packages.contains(&package))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::{StoreOptions, StoreTarget};

    #[tokio::test]
    async fn old_files_that_never_became_objects_go_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let target = StoreTarget::Directory(directory.path().to_owned());
        let store = Store::open(&target, StoreOptions::default()).await.unwrap();
        let data = directory.path().join(DATA_DIRECTORY);
        let now = Timestamp::now();
        let going_on = PackageId::fresh();
        let make = |path: &str, age: i64| {
            let path = data.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "12345").unwrap();
            let modified = now - SignedDuration::from_hours(age);
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.file().set_modified(modified.into()).unwrap();
            path
        };
        let left = [
            make("bitstreams/sha256/ab/cd/abcd#1", 48),
            make("packs/s/x.zip#12", 48),
            make(&format!("uploads/s/{}.part", PackageId::fresh()), 48),
            make("spool/thresher-tmp-x", 48),
        ];
        let kept = [
            make("bitstreams/sha256/ab/cd/abcd#2", 1),
            make("bitstreams/sha256/ab/cd/abcd", 48),
            make(&format!("uploads/s/{going_on}.part"), 48),
            make("uploads/s/7.json", 48),
            make("catalogs/s/wal/1#1", 48),
            make("spool/thresher-tmp-y", 1),
        ];
        assert_eq!(store.temporaries().await.unwrap(), Amount { objects: 1, bytes: 5 });
        let young = now - SignedDuration::from_hours(24);
        let growing = Growing { packages: [going_on].into(), ..Growing::default() };
        for remove in [false, true] {
            let found = store.orphans(young, growing.clone(), remove).await.unwrap();
            assert_eq!(found, Amount { objects: 4, bytes: 20 }, "{remove}");
            assert!(left.iter().all(|path| path.exists() != remove));
        }
        assert!(kept.iter().all(|path| path.exists()));
    }
}
