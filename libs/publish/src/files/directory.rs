//! A directory whose files are published.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fixity::Sha256;
use model::ResourceUri;
use tokio::time::sleep;
use url::Url;

use super::FOLDER;
use super::beneath::{self, OpenFile, is_missing};
use super::last::Last;
use super::media_types::media_type;
use super::row::Row;
use super::rows::FILES;
use super::scan::SAVE_EVERY;
use super::spelling::url;
use super::watched::{Watched, Watching};
use crate::place::Place;
use crate::records::{Body, Stored};
use crate::{Base, PublishError};

/// The files of a directory.
#[derive(Debug)]
pub struct FileRecords {
    pub(super) directory: PathBuf,
    /// The URL of the directory, with a slash at its end.
    pub(super) url: String,
    pub(super) place: Place,
    pub(super) allow_deletes: bool,
    pub(super) save_every: u64,
    /// None if changes are not to be heard of.
    pub(super) watched: Option<Arc<Watched>>,
    pub(super) last: Mutex<Option<Last>>,
}

impl FileRecords {
    /// The files of a directory, with this URL. What is known of them is kept at the place.
    ///
    /// # Errors
    /// [`PublishError::Refused`] for a directory that holds the place in its way, or a URL that cannot be that of files.
    pub fn new(directory: &Path, url: &Url, place: &Place) -> Result<Self, PublishError> {
        let url = Base::new(url.clone())?.as_str().to_owned();
        let at = directory.display();
        let directory = fs_err::canonicalize(directory).map_err(|error| {
            PublishError::Refused(format!("cannot publish {at}: {error}; pass a directory"))
        })?;
        if place.local().is_some_and(|place| directory.starts_with(place)) {
            let why = format!("{at} is inside {}; publish to a directory beside it", place.name());
            return Err(PublishError::Refused(why));
        }
        let place = place.clone();
        let (allow_deletes, save_every) = (false, SAVE_EVERY);
        let last = Mutex::default();
        Ok(Self { directory, url, place, allow_deletes, save_every, watched: None, last })
    }

    /// Whether more than half of the files may be gone.
    #[must_use]
    pub fn allow_deletes(mut self, allow: bool) -> Self {
        self.allow_deletes = allow;
        self
    }

    /// Bytes of files after which what is known of them is saved, before the scan is complete.
    #[must_use]
    pub fn save_every(mut self, bytes: u64) -> Self {
        self.save_every = bytes;
        self
    }

    /// Hears of changes from the kernel, if that is possible: a scan then looks only at what has changed.
    #[must_use]
    pub fn watched(mut self, watching: Watching) -> Self {
        self.watched = Some(Arc::new(Watched::new(self.directory.clone(), watching)));
        self
    }

    /// Waits until the next scan is due, which is not before `rest` has passed: soon after a change that is heard of,
    /// and after each `every` if something else is to be looked at. If no changes are heard of, after `every`.
    pub async fn due(&self, rest: Duration, every: Duration) {
        match &self.watched {
            Some(watched) => watched.due(rest, every).await,
            None => sleep(rest.max(every)).await,
        }
    }

    /// The URL of the directory.
    pub fn directory_url(&self) -> &str {
        &self.url
    }

    /// The URI of the file at a path below the base.
    pub fn uri_at(&self, path: &str) -> Option<ResourceUri> {
        self.uri(path.strip_prefix(FOLDER)?).ok()
    }

    /// Opens the file at a path below the base. None where no file is published; it may have changed since.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open_at(&self, path: &str) -> std::io::Result<Option<OpenFile>> {
        let Some(path) = path.strip_prefix(FOLDER) else { return Ok(None) };
        match beneath::open(&self.directory, path) {
            Ok(file) => Ok(Some(match self.digest(path, &file) {
                Some(sha256) => file.with_digest(sha256),
                None => file,
            })),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The digest of a file that is as it was scanned. None where its time does not tell.
    fn digest(&self, path: &str, open: &OpenFile) -> Option<Sha256> {
        let row = self.last().ok()?.rows.find(path).ok()??;
        row.sha256.filter(|_| row.stamp == open.stamp && !row.unsure)
    }

    /// What the last scan left.
    pub(super) fn last(&self) -> Result<Last, PublishError> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.ok_or_else(|| PublishError::changed(FILES, "it was not read"))
    }

    pub(super) fn stored(&self, path: &str, row: &Row, sha256: Sha256) -> Stored {
        Stored {
            lastmod: row.stamp.time(),
            hash: format!("sha-256:{sha256}"),
            length: row.stamp.length,
            media_type: media_type(path).map(str::to_owned),
            encoding: None,
            links: Vec::new(),
            body: Body::File(sha256),
        }
    }

    pub(super) fn uri(&self, path: &str) -> Result<ResourceUri, PublishError> {
        url(&self.url, path).parse().map_err(|error| PublishError::changed(FILES, error))
    }
}
