//! Ways to a place: by itself, of a store, for one writer or several.

use std::path::Path;
use std::sync::Arc;

use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, PutMode};
use store::PublicationPlace;

use super::{Bucket, Directory, Guard, Kind, Place, SmallFiles, key};
use crate::PublishError;

/// An object that tells whether the bucket has conditional puts.
const PROBE: &str = ".thresher/conditional-put";
const PROBE_TEXT: &str =
    "Thresher tries to create this object again, to see whether the bucket refuses that.\n";

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
    /// fails: the state of the publication, and each Change List, is replaced only as it was read. A bucket needs
    /// conditional puts. A directory has a lock of its own.
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
}
