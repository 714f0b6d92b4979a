//! What a store is made of: a local directory, or a bucket.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::multipart::MultipartStore;
use object_store::path::Path;

use crate::error::AtObject;
use crate::s3::Presigner;
use crate::unfinished::UploadLister;
use crate::{DATA_DIRECTORY, StoreError, View};

/// How objects are stored beyond what all object stores have in common.
pub(crate) enum Backend {
    Local(Local),
    Bucket(Bucket),
}

/// State that only a local store has.
pub(crate) struct Local {
    pub(crate) directory: PathBuf,
    pub(crate) view: View,
    pub(crate) objects: LocalFileSystem,
    pub(crate) fsync: bool,
}

/// State that only a bucket has, or a store in memory.
pub(crate) struct Bucket {
    /// Keeps uploads in parts until they are completed.
    pub(crate) parts: Arc<dyn MultipartStore>,
    /// None where unfinished uploads cannot be listed.
    pub(crate) lister: Option<UploadLister>,
    /// None where URLs cannot be signed.
    pub(crate) presigner: Option<Presigner>,
}

impl Local {
    /// Thresher's own directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join(DATA_DIRECTORY)
    }

    /// The file of an object.
    pub(crate) fn file(&self, object: &Path) -> Result<PathBuf, StoreError> {
        let root = || self.data().display().to_string();
        self.objects.path_to_filesystem(object).at_object(&root(), object)
    }
}

impl Backend {
    /// A bucket whose unfinished uploads cannot be listed.
    pub(crate) fn unlisted(parts: Arc<dyn MultipartStore>) -> Self {
        Self::Bucket(Bucket { parts, lister: None, presigner: None })
    }
}
