//! Opening a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::multipart::MultipartStore;
use object_store::prefix::PrefixStore;
use tokio::sync::watch;

use crate::backend::{Backend, Bucket, Local};
use crate::error::{AtFile, AtObject};
use crate::files::blocking;
use crate::health::{StoreFailure, StoreHealth};
use crate::noted_sources::NotedSources;
use crate::s3::{Patience, Presigner, S3Settings};
use crate::unfinished::UploadLister;
use crate::watched::Watched;
use crate::{DATA_DIRECTORY, Operations, S3Options, StoreError, StoreTarget, View, probe, temporary, view};

/// The spool directory inside a local store.
const SPOOL: &str = "spool";

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
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    objects: Arc<Watched>,
    backend: Backend,
    root: Arc<str>,
    health: StoreHealth,
    spool_directory: PathBuf,
    noted: NotedSources,
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
        Self::over_objects(objects, "memory", std::env::temp_dir())
    }

    /// A store over any object store, such as one that a test damages. Conditional puts are not tested.
    /// Bodies are spooled below `spool_directory`, which must exist.
    pub fn over_objects(
        objects: Arc<impl ObjectStore + MultipartStore>,
        root: &str,
        spool_directory: PathBuf,
    ) -> Self {
        let backend = Backend::unlisted(Arc::clone(&objects) as _);
        Self::over(objects, backend, root, spool_directory)
    }

    /// The store's name, for messages.
    pub fn root(&self) -> &str {
        &self.0.root
    }

    /// The directory of the view; only a local store has one.
    pub fn directory(&self) -> Option<&Path> {
        self.on_disk().map(|local| local.directory.as_path())
    }

    /// The view of a local store.
    pub fn view(&self) -> Option<View> {
        self.on_disk().map(|local| local.view.clone())
    }

    /// The object store itself, with keys as [`Key`](crate::Key) gives them, for the catalog.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0.objects) as _
    }

    /// The last failure of the store, of our operations and the catalog's. A success clears it: a write
    /// clears a failed write, a read clears a failed read.
    pub fn trouble(&self) -> watch::Receiver<Option<StoreFailure>> {
        self.0.health.subscribe()
    }

    /// Counters of the store's operations, ours and the catalog's.
    pub fn operations(&self) -> Operations {
        self.0.health.operations().clone()
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
            fs::create_dir_all(&data).at_file("create directory", &data)?;
        }
        let directory = fs::canonicalize(directory).at_file("open directory", directory)?;
        let data = directory.join(DATA_DIRECTORY);
        let root = data.display().to_string();
        let objects =
            LocalFileSystem::new_with_prefix(&data).at_object(&root, &"")?.with_fsync(options.fsync);
        let spool_directory = options.spool_directory.unwrap_or_else(|| data.join(SPOOL));
        let view = View::new(&directory);
        let local = Local { directory, view, objects: objects.clone(), fsync: options.fsync };
        let store = Self::over(Arc::new(objects), Backend::Local(local), &root, spool_directory);
        if !options.read_only {
            probe::conditional_put(store.objects(), store.root()).await?;
            sweep(store.temporary_directories()).await?;
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
        let presigner = Presigner { s3: s3.clone(), prefix: prefix.clone() };
        let objects = Arc::new(PrefixStore::new(s3, prefix.clone()));
        let parts = Arc::clone(&objects) as _;
        let bucket = Bucket { parts, lister: Some(lister), presigner: Some(presigner) };
        Ok(Self::over(objects, Backend::Bucket(bucket), &root, spool_directory))
    }

    pub(crate) fn over(
        objects: Arc<dyn ObjectStore>,
        backend: Backend,
        root: &str,
        spool_directory: PathBuf,
    ) -> Self {
        let root: Arc<str> = root.into();
        let health = StoreHealth::new();
        let objects = Arc::new(Watched::new(objects, Arc::clone(&root), health.clone()));
        let noted = NotedSources::default();
        Self(Arc::new(Inner { objects, backend, root, health, spool_directory, noted }))
    }

    pub(crate) fn objects(&self) -> &Watched {
        &self.0.objects
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    pub(crate) fn health(&self) -> &StoreHealth {
        &self.0.health
    }

    pub(crate) fn noted_sources(&self) -> &NotedSources {
        &self.0.noted
    }

    pub(crate) fn on_disk(&self) -> Option<&Local> {
        match &self.0.backend {
            Backend::Local(local) => Some(local),
            Backend::Bucket(_) => None,
        }
    }

    /// The directory in which bodies are spooled.
    pub fn spool_directory(&self) -> &Path {
        &self.0.spool_directory
    }

    /// The directories in which this process creates temporary files.
    pub(crate) fn temporary_directories(&self) -> Vec<PathBuf> {
        let view = self.on_disk().map(|local| local.data().join(view::TEMPORARY));
        std::iter::once(self.0.spool_directory.clone()).chain(view).collect()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.root())
    }
}

/// Removes what killed processes left behind.
async fn sweep(directories: Vec<PathBuf>) -> Result<(), StoreError> {
    let work = move || Ok(temporary::abandoned(&directories, true));
    let removed = blocking("sweep temporary files", work).await?;
    if removed.objects > 0 {
        tracing::debug!(files = removed.objects, "removed files that killed processes left behind");
    }
    Ok(())
}
