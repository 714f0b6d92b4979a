//! Orphans of killed processes: files that never became objects.

use std::collections::HashSet;
use std::path::Path;

use fs_err as fs;
use jiff::Timestamp;
use model::PackageId;

use crate::backend::{Backend, Bucket};
use crate::files::blocking;
use crate::unfinished::UploadLister;
use crate::{Amount, Key, Store, StoreError, temporary};

/// The folders of our own objects. The catalogs' database removes its own orphans.
const FOLDERS: [&str; 6] = ["bitstreams", "packs", "packages", "uploads", "sources", "moves"];

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
        blocking("look for temporary files", move || Ok(temporary::abandoned(&directories, false))).await
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
        let mut folders = Vec::new();
        let mut found = Amount::default();
        match self.backend() {
            Backend::Local(local) => folders.extend(FOLDERS.map(|folder| local.data().join(folder))),
            Backend::Bucket(Bucket { lister: Some(lister), .. }) => {
                found = self.unfinished_uploads(lister, young, &growing, remove).await?;
            }
            Backend::Bucket(_) => {}
        }
        let work = move || {
            let mut files = temporary::abandoned(&directories, remove);
            for folder in folders {
                unfinished(&folder, young, &growing, remove, &mut files);
            }
            Ok(files)
        };
        found += blocking("look for what is left of killed processes", work).await?;
        Ok(found)
    }

    /// Counts abandoned uploads that began before `young`, and aborts them on request. The number of bytes
    /// that they received is not reported. A store that cannot list uploads is skipped.
    async fn unfinished_uploads(
        &self,
        lister: &UploadLister,
        young: Timestamp,
        growing: &Growing,
        remove: bool,
    ) -> Result<Amount, StoreError> {
        let mut found = Amount::default();
        let mut after = None;
        loop {
            let page = match lister.page(after.as_ref()).await {
                Ok(page) => page,
                Err(why) => {
                    tracing::warn!(
                        store = self.root(),
                        why,
                        "unfinished uploads cannot be listed; a lifecycle rule of the bucket has to abort them"
                    );
                    return Ok(found);
                }
            };
            for begun in &page.uploads {
                let key = begun.key.strip_prefix(&lister.prefix).and_then(|key| key.parse::<Key>().ok());
                // Uploads of other programs are skipped, and so are those of the catalogs' database.
                let Some(key @ (Key::Bitstream(_) | Key::Package { .. })) = key else { continue };
                let goes_on = growing.uploads.contains(&begun.upload)
                    || matches!(&key, Key::Package { package, .. } if growing.packages.contains(package));
                if goes_on || begun.initiated.is_none_or(|initiated| initiated >= young) {
                    continue;
                }
                if remove {
                    self.abort_parts(&key, &begun.upload).await?;
                }
                found.objects += 1;
            }
            match page.next {
                Some(next) if Some(&next) != after.as_ref() => after = Some(next),
                _ => return Ok(found),
            }
        }
    }
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
    use crate::{DATA_DIRECTORY, StoreOptions, StoreTarget};

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
