//! Opening a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::multipart::MultipartStore;
use object_store::prefix::PrefixStore;
use tokio::sync::watch;

use crate::health::{StoreFailure, StoreHealth};
use crate::parts::Parts;
use crate::s3::{Patience, S3Settings};
use crate::spool::blocking;
use crate::unfinished::UploadLister;
use crate::watched::Watched;
use crate::{Operations, S3Options, StoreError, StoreTarget, View, probe, spool, temporary, view};

/// Thresher's own directory inside a local target.
pub const DATA_DIRECTORY: &str = ".thresher";

/// Options of opening a store.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    /// Opens for reading only: nothing is created, and conditional puts are not tested.
    pub read_only: bool,
    /// Where bodies are spooled. Absent: inside a local target, else the system's temporary directory.
    pub spool_directory: Option<PathBuf>,
    /// Local targets: flush every object to the disk before it counts as stored. Slower; a killed process loses
    /// nothing either way, a machine that loses its power may.
    pub fsync: bool,
}

/// Bitstreams, packs and views in object storage. Cheap to clone: all clones are the same store.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    objects: Arc<Watched>,
    parts: Parts,
    root: Arc<str>,
    board: StoreHealth,
    local: Option<Local>,
    lister: Option<UploadLister>,
    spool_directory: PathBuf,
}

/// State that only a local store has.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) directory: PathBuf,
    pub(crate) view: View,
    pub(crate) objects: LocalFileSystem,
    pub(crate) fsync: bool,
}

impl Store {
    /// Opens the store at `target`; S3 takes its settings from the usual `AWS_*` variables.
    ///
    /// A store opened for writing is tested first: it must refuse to create an object twice.
    ///
    /// # Errors
    /// [`StoreError::Config`] when settings are missing or wrong, [`StoreError::NotFound`] when a store
    /// opened for reading does not exist, [`StoreError::Unsupported`] when it has no conditional puts;
    /// otherwise the error of the store.
    pub async fn open(target: &StoreTarget, options: StoreOptions) -> Result<Self, StoreError> {
        // Variables that are not UTF-8 are never settings of ours.
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::open_with(target, variables, options).await
    }

    /// Opens the store at `target`; S3 takes its settings from the `AWS_*` entries of `variables`, where a
    /// later one wins.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_with(
        target: &StoreTarget,
        variables: impl IntoIterator<Item = (String, String)>,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        match target {
            StoreTarget::Directory(directory) => Self::local(directory, options).await,
            StoreTarget::S3 { bucket, prefix } => {
                let settings = S3Settings::from_variables(bucket, variables)?;
                Self::remote(target, prefix, &settings, options).await
            }
        }
    }

    /// Opens a bucket without reading the environment.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn s3(s3: &S3Options, options: StoreOptions) -> Result<Self, StoreError> {
        let target: StoreTarget = format!("s3://{}/{}", s3.bucket, s3.prefix).parse()?;
        Self::remote(&target, &s3.prefix, &S3Settings::from_options(s3), options).await
    }

    /// A store in memory, gone with its last clone.
    pub fn in_memory() -> Self {
        let objects = Arc::new(InMemory::new());
        let parts = Parts::Multipart(Arc::clone(&objects) as _);
        Self::over(objects, parts, "memory", None, std::env::temp_dir())
    }

    /// A store over any object store, such as one that a test damages. Conditional puts are not tested.
    /// Bodies are spooled below `spool_directory`, which must exist.
    pub fn over_objects(
        objects: Arc<impl ObjectStore + MultipartStore>,
        root: &str,
        spool_directory: PathBuf,
    ) -> Self {
        let parts = Parts::Multipart(Arc::clone(&objects) as _);
        Self::over(objects, parts, root, None, spool_directory)
    }

    /// The store's name, for messages.
    pub fn root(&self) -> &str {
        &self.0.root
    }

    /// The directory of the view; only a local store has one.
    pub fn directory(&self) -> Option<&Path> {
        self.0.local.as_ref().map(|local| local.directory.as_path())
    }

    /// The view of a local store.
    pub fn view(&self) -> Option<View> {
        self.0.local.as_ref().map(|local| local.view.clone())
    }

    /// The object store itself, with keys as [`Key`](crate::Key) gives them, for the catalog.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0.objects) as Arc<dyn ObjectStore>
    }

    /// The last failure of the store, of our operations and the catalog's. A success clears it: a write
    /// clears a failed write, a read clears a failed read.
    pub fn trouble(&self) -> watch::Receiver<Option<StoreFailure>> {
        self.0.board.subscribe()
    }

    /// Counters of the store's operations, ours and the catalog's.
    pub fn operations(&self) -> Operations {
        self.0.board.operations().clone()
    }

    async fn local(directory: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let data = directory.join(DATA_DIRECTORY);
        if options.read_only && !data.is_dir() {
            return Err(StoreError::Config(format!(
                "there is no harvest in {}: {} does not exist; check the directory, or run a sync into it first",
                directory.display(),
                data.display()
            )));
        }
        if !options.read_only {
            fs::create_dir_all(&data).map_err(|e| StoreError::of_file("create directory", &data, e))?;
        }
        let directory =
            fs::canonicalize(directory).map_err(|e| StoreError::of_file("open directory", directory, e))?;
        let data = directory.join(DATA_DIRECTORY);
        let root = data.display().to_string();
        let objects = LocalFileSystem::new_with_prefix(&data)
            .map_err(|e| StoreError::of_object(&root, &"", e))?
            .with_fsync(options.fsync);
        let spool_directory = options.spool_directory.unwrap_or_else(|| data.join(spool::DIRECTORY));
        let leftovers = vec![spool_directory.clone(), data.join(view::TEMPORARY)];
        let view = View::new(&directory);
        let local = Local { directory, view, objects: objects.clone(), fsync: options.fsync };
        let store = Self::over(Arc::new(objects), Parts::File, &root, Some(local), spool_directory);
        if !options.read_only {
            probe::conditional_put(store.objects(), store.root()).await?;
            sweep(leftovers).await?;
        }
        Ok(store)
    }

    async fn remote(
        target: &StoreTarget,
        prefix: &str,
        settings: &S3Settings,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let root = target.to_string();
        let prefix = &object_store::path::Path::parse(prefix)
            .map_err(|error| StoreError::Config(format!("the prefix of {root} cannot be used: {error}")))?;
        let spool_directory = options.spool_directory.unwrap_or_else(std::env::temp_dir);
        if !options.read_only {
            sweep(vec![spool_directory.clone()]).await?;
            let objects = PrefixStore::new(settings.build(Patience::Short)?, prefix.clone());
            probe::conditional_put(&objects, &root).await.map_err(|error| {
                // The metadata address at which a cloud machine learns its role.
                if settings.has_credentials() || !error.to_string().contains("169.254.169.254") {
                    return error;
                }
                StoreError::Config(format!(
                    "cannot open {root}: there are no credentials (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), \
                     and this machine has no role that gives them: {error}"
                ))
            })?;
        }
        let s3 = settings.build(Patience::Long)?;
        let below = if prefix.as_ref().is_empty() { String::new() } else { format!("{prefix}/") };
        let lister = UploadLister::new(&s3, settings, &settings.client_options(Patience::Long), &below)
            .map_err(|error| StoreError::Config(format!("the S3 settings cannot be used: {error}")))?;
        let objects = Arc::new(PrefixStore::new(s3, prefix.clone()));
        let parts = Parts::Multipart(Arc::clone(&objects) as _);
        Ok(Self::made_of(objects, parts, &root, None, Some(lister), spool_directory))
    }

    pub(crate) fn over(
        objects: Arc<dyn ObjectStore>,
        parts: Parts,
        root: &str,
        local: Option<Local>,
        spool_directory: PathBuf,
    ) -> Self {
        Self::made_of(objects, parts, root, local, None, spool_directory)
    }

    fn made_of(
        objects: Arc<dyn ObjectStore>,
        parts: Parts,
        root: &str,
        local: Option<Local>,
        lister: Option<UploadLister>,
        spool_directory: PathBuf,
    ) -> Self {
        let (root, board): (Arc<str>, _) = (root.into(), StoreHealth::new());
        let objects = Arc::new(Watched::new(objects, Arc::clone(&root), board.clone()));
        Self(Arc::new(Inner { objects, parts, root, board, local, lister, spool_directory }))
    }

    pub(crate) fn objects(&self) -> &Watched {
        &self.0.objects
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    pub(crate) fn board(&self) -> &StoreHealth {
        &self.0.board
    }

    pub(crate) fn on_disk(&self) -> Option<&Local> {
        self.0.local.as_ref()
    }

    pub(crate) fn lister(&self) -> Option<&UploadLister> {
        self.0.lister.as_ref()
    }

    /// The directory in which bodies are spooled.
    pub fn spool_directory(&self) -> &Path {
        &self.0.spool_directory
    }
}

/// Removes what killed processes left behind.
async fn sweep(directories: Vec<PathBuf>) -> Result<(), StoreError> {
    let work = move || {
        directories.iter().for_each(|directory| temporary::sweep(directory));
        Ok(())
    };
    blocking("sweep temporary files", work).await
}
