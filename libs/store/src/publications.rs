//! Places for publications: in the store itself, or beside it.

use std::path::PathBuf;
use std::sync::Arc;

use fs_err as fs;
use model::SourceId;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;

use crate::error::{AtFile, AtObject};
use crate::s3::{Patience, S3Settings};
use crate::{Key, Store, StoreError, StoreTarget};

/// A place for the files of a publication, without any layout of ours.
#[derive(Debug, Clone)]
pub struct PublicationPlace {
    /// Its name, for messages.
    pub name: String,
    /// The directory, if it is a local one.
    pub directory: Option<PathBuf>,
    /// The same place as an object store.
    pub objects: Arc<dyn ObjectStore>,
}

impl PublicationPlace {
    /// A directory, which is created if missing, or a prefix of a bucket. S3 takes its settings from the usual
    /// `AWS_*` variables.
    ///
    /// # Errors
    /// [`StoreError::Config`] when settings are missing or wrong; the error of the file system.
    pub fn open(target: &StoreTarget) -> Result<Self, StoreError> {
        let name = target.to_string();
        match target {
            StoreTarget::Directory(directory) => {
                fs::create_dir_all(directory).at_file("create directory", directory)?;
                let directory = fs::canonicalize(directory).at_file("open directory", directory)?;
                let objects = LocalFileSystem::new_with_prefix(&directory).at_object(&name, &"")?;
                Ok(Self { name, directory: Some(directory), objects: Arc::new(objects) })
            }
            StoreTarget::S3 { bucket, prefix } => {
                let variables = std::env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
                let objects = S3Settings::from_variables(bucket, variables)?.build(Patience::Long)?;
                Ok(Self {
                    name,
                    directory: None,
                    objects: Arc::new(PrefixStore::new(objects, prefix.as_str())),
                })
            }
        }
    }
}

impl Store {
    /// The place for documents that are served from this store: `publications/<source>/…`.
    pub fn publication(&self, source: &SourceId) -> PublicationPlace {
        let folder = Key::publication(source);
        PublicationPlace {
            name: format!("{}/{folder}", self.root()),
            directory: self.on_disk().map(|local| local.data().join(folder.as_ref())),
            objects: Arc::new(PrefixStore::new(self.object_store(), folder)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_or_a_bucket() {
        let folder = tempfile::tempdir().unwrap();
        let target = StoreTarget::Directory(folder.path().join("new"));
        let place = PublicationPlace::open(&target).unwrap();
        assert_eq!(place.directory, Some(fs::canonicalize(folder.path().join("new")).unwrap()));

        let kept = Store::in_memory().publication(&"one".parse().unwrap());
        assert_eq!((kept.name.as_str(), kept.directory), ("memory/publications/one", None));
    }
}
