//! Where a publication is laid down: a directory or a bucket. A file appears whole, in the place of an earlier one.

mod bucket;
mod directory;
mod guard;
mod small;

use std::convert::Infallible;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fixity::Sha256;
use fs_err::File;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use object_store::path::Path as Key;
use object_store::prefix::PrefixStore;
use object_store::{
    GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion,
};
use resourcesync::{Options, Reader};
use store::PublicationPlace;
use tempfile::NamedTempFile;

use self::bucket::Bucket;
use self::directory::Directory;
use self::guard::Guard;
use self::small::{SMALL_BYTES, SmallFile, SmallFiles};
use crate::PublishError;
use crate::paths::{is_change_list, is_immutable};

/// The folder of files that belong to the publisher alone. Servers need not serve it.
pub(crate) const OWN: &str = ".thresher";

/// More than the header of any document of ours takes.
const HEAD_BYTES: u64 = 16 * 1024;
/// An object that tells whether the bucket has conditional puts.
const PROBE: &str = ".thresher/conditional-put";
const PROBE_TEXT: &str =
    "Thresher tries to create this object again, to see whether the bucket refuses that.\n";

/// A place for the files of one publication.
#[derive(Debug, Clone)]
pub struct Place {
    name: Arc<str>,
    objects: Arc<dyn ObjectStore>,
    kind: Kind,
    /// Of the state of the publication, in a bucket.
    guard: Option<Guard>,
    /// Whether several processes may write it, one at a time.
    is_shared: bool,
    /// Files for readers.
    small: SmallFiles,
}

/// A file for a reader, with its length and times.
#[derive(Debug)]
pub struct Document {
    /// What the store tells of it.
    pub meta: ObjectMeta,
    /// The digest of its bytes, if they are in memory.
    pub sha256: Option<Sha256>,
    /// Whether it never changes: a part, a package, or a closed Change List.
    pub is_final: bool,
    /// Its bytes.
    pub body: DocumentBody,
}

/// The bytes of a [`Document`].
#[derive(Debug)]
pub enum DocumentBody {
    /// A small one, in memory.
    Small(Bytes),
    /// A large one, to be read from the place.
    Large(GetResult),
}

#[derive(Debug, Clone)]
enum Kind {
    Directory(Directory),
    Bucket(Bucket),
}

/// What a system said.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What a server tells of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// Its media type.
    pub(crate) media_type: Option<String>,
    /// Its Content-Encoding.
    pub(crate) encoding: Option<String>,
    /// Its Last-Modified, where the place can keep that.
    pub(crate) modified: Option<Timestamp>,
    /// Whether it is for the publisher alone, since it has a secret.
    pub(crate) is_private: bool,
}

/// What a server tells of a document.
pub(crate) fn xml() -> About {
    About { media_type: Some("application/xml".to_owned()), ..About::default() }
}

/// Held by the one process that publishes to a place.
#[derive(Debug)]
pub(crate) struct PlaceLock(#[expect(dead_code, reason = "held until it is dropped")] Option<File>);

impl Place {
    /// A local directory, which is created if missing. `objects` has the same directory as its root.
    ///
    /// # Errors
    /// [`PublishError::Place`] when it cannot be created.
    pub fn directory(directory: &Path, objects: Arc<dyn ObjectStore>) -> Result<Self, PublishError> {
        let name = directory.display().to_string().into();
        let kind = Kind::Directory(Directory::create(directory)?);
        Ok(Self { name, objects, kind, guard: None, is_shared: false, small: SmallFiles::default() })
    }

    /// A bucket, or a prefix of one. `name` is for messages.
    pub fn bucket(name: &str, objects: Arc<dyn ObjectStore>) -> Self {
        let kind = Kind::Bucket(Bucket::new(Arc::clone(&objects)));
        let small = SmallFiles::default();
        Self { name: name.into(), objects, kind, guard: None, is_shared: false, small }
    }

    /// A place of a store, or beside one.
    ///
    /// # Errors
    /// [`PublishError::Place`] when a directory cannot be created.
    pub fn of(PublicationPlace { name, directory, objects }: PublicationPlace) -> Result<Self, PublishError> {
        match directory {
            Some(directory) => Self::directory(&directory, objects),
            None => Ok(Self::bucket(&name, objects)),
        }
    }

    /// The same place, for several processes, of which one writes at a time. One that another has overtaken fails, as
    /// with [`Place::of_one_writer`].
    pub fn shared(self) -> Self {
        let place = self.of_one_writer();
        Self { is_shared: place.is_guarded(), ..place }
    }

    /// The same place, for one process that writes it. If another one does all the same, the one that was overtaken
    /// fails: the state of the publication is replaced only as it was read. A bucket needs conditional puts. A directory
    /// has a lock of its own.
    pub fn of_one_writer(self) -> Self {
        let guard = matches!(self.kind, Kind::Bucket(_)).then(Guard::default);
        Self { guard, ..self }
    }

    /// Whether the bucket refuses to create an object that is there. It costs one request, or two at a new place. A
    /// bucket that cannot be asked is taken for one without.
    pub async fn has_conditional_puts(&self) -> bool {
        for _ in 0..2 {
            let put = self.objects.put_opts(&key(PROBE), PROBE_TEXT.into(), PutMode::Create.into()).await;
            match put {
                Ok(_) => {}
                Err(error) => return matches!(error, object_store::Error::AlreadyExists { .. }),
            }
        }
        false
    }

    /// A folder of it, as a place of its own.
    ///
    /// # Errors
    /// [`PublishError::Place`] when a directory cannot be created.
    pub fn folder(&self, path: &str) -> Result<Self, PublishError> {
        let objects = Arc::new(PrefixStore::new(Arc::clone(&self.objects), path));
        let folder = match &self.kind {
            Kind::Directory(directory) => Self::directory(&directory.root().join(path), objects)?,
            Kind::Bucket(_) => Self::bucket(&format!("{}/{path}", self.name), objects),
        };
        let guard = self.guard.as_ref().map(|_| Guard::default());
        Ok(Self { guard, is_shared: self.is_shared, ..folder })
    }

    /// Whether several processes may write it, one at a time ([`Place::shared`]).
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether a process that another one has overtaken fails ([`Place::of_one_writer`]).
    pub fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// The local directory, if it is one.
    pub fn local(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Directory(directory) => Some(directory.root()),
            Kind::Bucket(_) => None,
        }
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A file of it, with its length and times.
    ///
    /// # Errors
    /// [`PublishError::Place`] when the place fails. A missing file is none.
    pub async fn open(&self, path: &str) -> Result<Option<GetResult>, PublishError> {
        match self.objects.get(&key(path)).await {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// A file for a reader. A small one may have been read up to a second ago; but it is never older than what this
    /// place has written.
    ///
    /// # Errors
    /// [`PublishError::Place`] when the place fails. A missing file is none.
    pub async fn document(&self, path: &str) -> Result<Option<Document>, PublishError> {
        let in_memory = |SmallFile { meta, bytes, sha256, is_final }| Document {
            meta,
            sha256: Some(sha256),
            is_final,
            body: DocumentBody::Small(bytes),
        };
        let small = (!self.is_shared).then_some(&self.small);
        let reading = match small.map(|small| small.get(path)) {
            Some(Ok(file)) => return Ok(Some(in_memory(file))),
            Some(Err(reading)) => Some(reading),
            None => None,
        };
        let Some(found) = self.open(path).await? else { return Ok(None) };
        let meta = found.meta.clone();
        if meta.size > SMALL_BYTES {
            let is_final = is_immutable(path) || self.is_closed_list(path, &meta).await?;
            return Ok(Some(Document { meta, sha256: None, is_final, body: DocumentBody::Large(found) }));
        }
        let bytes = found.bytes().await.map_err(|error| self.failed(path, error))?;
        let is_final = is_immutable(path) || is_change_list(path) && is_closed(&bytes);
        let file = SmallFile { meta, sha256: Sha256::of(&bytes), bytes, is_final };
        if let Some(reading) = reading {
            self.small.keep(path, &file, reading);
        }
        Ok(Some(in_memory(file)))
    }

    /// Whether a large file is a Change List that is closed, by its head.
    async fn is_closed_list(&self, path: &str, meta: &ObjectMeta) -> Result<bool, PublishError> {
        if !is_change_list(path) {
            return Ok(false);
        }
        let Some(head) = self.open_range(path, 0..HEAD_BYTES).await? else { return Ok(false) };
        // One that was open a moment ago is another version.
        let is_same = head.meta.e_tag == meta.e_tag && head.meta.last_modified == meta.last_modified;
        let head = head.bytes().await.map_err(|error| self.failed(path, error))?;
        Ok(is_same && is_closed(&head))
    }

    /// A range of a file, with its length and times.
    ///
    /// # Errors
    /// [`PublishError::Place`] when the place fails. A missing file is none.
    pub async fn open_range(&self, path: &str, range: Range<u64>) -> Result<Option<GetResult>, PublishError> {
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        match self.objects.get_opts(&key(path), options).await {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// A small file of it, in memory.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<Bytes>, PublishError> {
        let Some(found) = self.open(path).await? else { return Ok(None) };
        found.bytes().await.map(Some).map_err(|error| self.failed(path, error))
    }

    /// A small file that is [replaced](Self::replace) later.
    pub(crate) async fn read_to_replace(&self, path: &str) -> Result<Option<Bytes>, PublishError> {
        let Some(guard) = &self.guard else { return self.read(path).await };
        let Some(found) = self.open(path).await? else {
            guard.note(None);
            return Ok(None);
        };
        let ObjectMeta { e_tag, version, .. } = found.meta.clone();
        guard.note(Some(UpdateVersion { e_tag, version }));
        found.bytes().await.map(Some).map_err(|error| self.failed(path, error))
    }

    /// Replaces a small file that was read before.
    ///
    /// # Errors
    /// [`PublishError::Busy`] when another process has replaced it meanwhile.
    pub(crate) async fn replace(&self, path: &str, bytes: Bytes, about: &About) -> Result<(), PublishError> {
        let Some(guard) = &self.guard else { return self.put(path, bytes, about).await };
        let attributes = bucket::attributes(about);
        let options = PutOptions { mode: guard.mode(), attributes, ..PutOptions::default() };
        match self.objects.put_opts(&key(path), bytes.into(), options).await {
            Ok(written) => {
                guard.note(Some(written.into()));
                Ok(())
            }
            Err(object_store::Error::Precondition { .. } | object_store::Error::AlreadyExists { .. }) => {
                Err(PublishError::Busy(self.name.to_string()))
            }
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// The paths of at most so many files of a folder.
    pub(crate) async fn list(&self, folder: &str, most: usize) -> Result<Vec<String>, PublishError> {
        let mut files = self.objects.list(Some(&key(folder))).take(most);
        let mut paths = Vec::new();
        while let Some(file) = files.next().await {
            paths.push(file.map_err(|error| self.failed(folder, error))?.location.to_string());
        }
        Ok(paths)
    }

    /// Looks at the path of each file of a folder.
    pub(crate) async fn each(&self, folder: &str, mut look: impl FnMut(String)) -> Result<(), PublishError> {
        let mut files = self.objects.list(Some(&key(folder)));
        while let Some(file) = files.next().await {
            look(file.map_err(|error| self.failed(folder, error))?.location.to_string());
        }
        Ok(())
    }

    /// Whether it has any file that is not the publisher's own.
    pub(crate) async fn has_others(&self) -> Result<bool, PublishError> {
        let is_own = |path: &Key| path.as_ref().strip_prefix(OWN).is_some_and(|rest| rest.starts_with('/'));
        let mut files = self.objects.list(None);
        while let Some(file) = files.next().await {
            if !is_own(&file.map_err(|error| self.failed("", error))?.location) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes bytes that are in memory.
    pub(crate) async fn put(&self, path: &str, bytes: Bytes, about: &About) -> Result<(), PublishError> {
        let pieces = stream::iter([Ok::<_, Infallible>(bytes)]).boxed();
        let Ok(()) = self.put_pieces(path, pieces, about).await?;
        Ok(())
    }

    /// Writes a finished temporary file.
    pub(crate) async fn put_file(
        &self,
        path: &str,
        file: NamedTempFile,
        about: &About,
    ) -> Result<(), PublishError> {
        self.small.writing(path);
        let written = match &self.kind {
            Kind::Directory(directory) => directory.adopt(path, file, about).await.map_err(Into::into),
            Kind::Bucket(bucket) => bucket.upload(path, file, about).await,
        };
        self.small.written(path);
        written.map_err(|error: Cause| self.failed(path, error))
    }

    /// Writes verified bytes as they come. The inner error is that of the bytes: then the place is as before.
    pub(crate) async fn put_pieces<E: Send + 'static>(
        &self,
        path: &str,
        pieces: BoxStream<'static, Result<Bytes, E>>,
        about: &About,
    ) -> Result<Result<(), E>, PublishError> {
        self.small.writing(path);
        let written = match &self.kind {
            Kind::Directory(directory) => directory.put(path, pieces, about).await.map_err(Into::into),
            Kind::Bucket(bucket) => bucket.put(path, pieces, about).await.map_err(Into::into),
        };
        self.small.written(path);
        written.map_err(|error: Cause| self.failed(path, error))
    }

    /// A copy of a file, as a temporary file that is read from its beginning. A missing file is none.
    pub(crate) async fn copy(&self, path: &str) -> Result<Option<std::fs::File>, PublishError> {
        let Some(found) = self.open(path).await? else { return Ok(None) };
        let mut file = self.temporary()?.into_file();
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.try_next().await.map_err(|error| self.failed(path, error))? {
            file.write_all(&piece)?;
        }
        file.seek(SeekFrom::Start(0))?;
        Ok(Some(file))
    }

    /// Removes a file; a missing one is no error.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), PublishError> {
        self.small.writing(path);
        let removed: Result<(), Cause> = match &self.kind {
            Kind::Directory(directory) => directory.remove(path).await.map_err(Into::into),
            Kind::Bucket(_) => match self.objects.delete(&key(path)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            },
        };
        self.small.written(path);
        removed.map_err(|error| self.failed(path, error))
    }

    /// Waits until all that was written is on the disk.
    pub(crate) async fn flush(&self) -> Result<(), PublishError> {
        match &self.kind {
            Kind::Directory(directory) => directory.flush().await.map_err(|error| self.failed("", error)),
            Kind::Bucket(_) => Ok(()),
        }
    }

    /// A temporary file, on the disk of the place if it has one.
    pub(crate) fn temporary(&self) -> Result<NamedTempFile, PublishError> {
        match &self.kind {
            Kind::Directory(directory) => directory.temporary(),
            Kind::Bucket(_) => NamedTempFile::new(),
        }
        .map_err(|error| PublishError::place(&self.name, error))
    }

    /// Keeps other processes from publishing to the same directory. A bucket has no such lock.
    pub(crate) fn lock(&self) -> Result<PlaceLock, PublishError> {
        let Kind::Directory(directory) = &self.kind else { return Ok(PlaceLock(None)) };
        match directory.lock() {
            Ok(Some(file)) => Ok(PlaceLock(Some(file))),
            Ok(None) => Err(PublishError::Busy(self.name.to_string())),
            Err(error) => Err(self.failed("", error)),
        }
    }

    fn failed(&self, path: &str, error: impl Into<Cause>) -> PublishError {
        PublishError::place(&format!("{}/{path}", self.name), error)
    }
}

/// Whether a Change List has its end, in its document or in a large begin of it. It is never written again then.
fn is_closed(document: &[u8]) -> bool {
    let reader = Reader::new(document, Options::default());
    reader.is_ok_and(|mut reader| reader.header().is_ok_and(|header| header.until.is_some()))
}

/// The key of a path: the path itself. Paths have no control characters, and no `.` or `..` as a segment.
fn key(path: &str) -> Key {
    Key::parse(path).unwrap_or_else(|_| Key::from(path))
}
