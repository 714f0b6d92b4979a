//! The files of a directory, as records.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use fixity::Sha256;
use futures::{StreamExt as _, TryStreamExt as _, future};
use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::Change;
use rustix::io::Errno;
use url::Url;

use super::FOLDER;
use super::beneath::{self, OpenFile};
use super::media_types::media_type;
use super::merge::{SAVE_EVERY, Scan};
use super::rows::{FILES, Row, Rows};
use super::spelling::{order, path, url};
use super::streams::{pieces, rows};
use crate::names::{Named, PublishedPath};
use crate::place::{About, Place};
use crate::records::{Body, BodyError, Changes, FileError, Pieces, Records, Resources, Stored, Told};
use crate::scanned::Scanned;
use crate::{Base, PublishError};

/// The files of a directory.
#[derive(Debug)]
pub struct FileRecords {
    directory: PathBuf,
    /// The URL of the directory, with a slash at its end.
    url: String,
    place: Place,
    allow_deletes: bool,
    save_every: u64,
    rows: Mutex<Option<Rows>>,
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
        Ok(Self { directory, url, place, allow_deletes, save_every, rows: Mutex::default() })
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
        let row = self.rows().ok()?.find(path).ok()??;
        row.sha256.filter(|_| row.stamp == open.stamp && !row.unsure)
    }

    /// The rows of the last scan.
    fn rows(&self) -> Result<Rows, PublishError> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rows.ok_or_else(|| PublishError::changed(FILES, "it was not read"))
    }

    fn stored(&self, path: &str, row: &Row, sha256: Sha256) -> Stored {
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

    fn uri(&self, path: &str) -> Result<ResourceUri, PublishError> {
        url(&self.url, path).parse().map_err(|error| PublishError::changed(FILES, error))
    }
}

#[async_trait]
impl Records for FileRecords {
    /// Scans the directory.
    async fn refresh(&self, published: u64, now: Timestamp) -> Result<Option<Scanned>, PublishError> {
        let old = self.place.copy(FILES).await?.map(Rows::open).transpose()?;
        let now = u64::try_from(now.as_microsecond()).unwrap_or_default();
        let last = old.as_ref().map_or(0, |old| old.head.changed + 1);
        let stop = StopOnDrop(Arc::default());
        let scan = Scan {
            directory: self.directory.clone(),
            url: self.url.clone(),
            place: self.place.clone(),
            old: old.clone(),
            number: now.max(last).max(published),
            published,
            allow_deletes: self.allow_deletes,
            save_every: self.save_every,
            stop: Arc::clone(&stop.0),
        };
        let task = tokio::task::spawn_blocking(move || scan.run());
        let (scanned, found) = task.await.map_err(|error| PublishError::place(FILES, error))??;
        let rows = match found {
            Some(file) => {
                let rows = Rows::open(file.reopen()?)?;
                self.place.put_file(FILES, file, &About::default()).await?;
                Some(rows)
            }
            None => old,
        };
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = rows;
        Ok(Some(scanned))
    }

    async fn next_change(&self) -> Result<u64, PublishError> {
        Ok(self.rows()?.head.changed + 1)
    }

    /// False if the rows of the last scan are lost: without them, no scan finds which files were deleted.
    async fn continues(&self, from: u64) -> Result<bool, PublishError> {
        Ok(from == 0 || self.rows()?.head.begun < from)
    }

    async fn last_change(&self) -> Result<Option<Timestamp>, PublishError> {
        Ok(Some(time(self.rows()?.head.changed)))
    }

    async fn resources<'a>(&'a self, after: Option<&ResourceUri>) -> Result<Resources<'a>, PublishError> {
        let after = after.and_then(|after| path(&self.url, after));
        let rows = rows(self.rows()?.read()).try_filter_map(move |row| {
            let is_behind = after.as_ref().is_none_or(|after| order(&row.path, after).is_gt());
            let found = row.sha256.filter(|_| is_behind).map(|sha256| {
                let stored = self.stored(&row.path, &row, sha256);
                self.uri(&row.path).map(|uri| (uri, stored))
            });
            future::ready(found.transpose())
        });
        Ok(rows.boxed())
    }

    async fn changes<'a>(&'a self, from: u64, end: u64) -> Result<Changes<'a>, PublishError> {
        let rows = rows(self.rows()?.read()).try_filter_map(move |row| {
            let told = (from..end).contains(&row.changed).then(|| {
                let kind = match (row.sha256, row.created) {
                    (None, _) => Change::Deleted,
                    (Some(_), true) => Change::Created,
                    (Some(_), false) => Change::Updated,
                };
                let stored = row.sha256.map(|sha256| self.stored(&row.path, &row, sha256));
                let told = |uri| Told { uri, kind, at: time(row.changed), stored, links: Vec::new() };
                self.uri(&row.path).map(told)
            });
            future::ready(told.transpose())
        });
        Ok(rows.boxed())
    }

    async fn is_present(&self, uri: &ResourceUri) -> Result<bool, PublishError> {
        let Some(path) = path(&self.url, uri) else { return Ok(false) };
        let directory = self.directory.clone();
        let open = tokio::task::spawn_blocking(move || beneath::open(&directory, &path));
        match open.await.map_err(std::io::Error::other)? {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            // It may be there and unreadable now: it stays.
            Err(_) => Ok(true),
        }
    }

    /// In one pass over the rows.
    async fn find(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Stored>>, PublishError> {
        let mut found = vec![None; uris.len()];
        let wanted: HashMap<&ResourceUri, usize> = uris.iter().zip(0..).collect();
        let mut all = self.resources(None).await?;
        while let Some((uri, stored)) = all.try_next().await? {
            if let Some(at) = wanted.get(&uri) {
                found[*at] = Some(stored);
            }
        }
        Ok(found)
    }

    /// Each below the URL of the directory: it is not known which files there were.
    async fn know(&self, uris: &[ResourceUri]) -> Result<Vec<bool>, PublishError> {
        Ok(uris.iter().map(|uri| path(&self.url, uri).is_some()).collect())
    }

    async fn open(&self, uri: &ResourceUri, stored: &Stored) -> Result<Pieces, BodyError> {
        let (Body::File(sha256), Some(path)) = (&stored.body, path(&self.url, uri)) else {
            return Err(FileError::Changed.into());
        };
        let directory = self.directory.clone();
        let open = tokio::task::spawn_blocking(move || beneath::open(&directory, &path));
        let open = open.await.map_err(std::io::Error::other).flatten().map_err(FileError::from)?;
        if open.length != stored.length {
            return Err(FileError::Changed.into());
        }
        Ok(pieces(open, *sha256))
    }

    fn path(&self, uri: &ResourceUri) -> PublishedPath {
        PublishedPath::plain(format!("{FOLDER}{}", path(&self.url, uri).unwrap_or_default()))
    }

    fn url(&self, _: &Base, uri: &ResourceUri) -> String {
        uri.to_string()
    }

    fn named(&self, _: &Base, url: &str) -> Option<Named> {
        let uri = url.parse().ok()?;
        path(&self.url, &uri).map(|_| Named::Resource(uri))
    }

    fn are_copies(&self) -> bool {
        false
    }
}

/// Ends a scan on another thread when the run that waits for it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    is_link || matches!(error.kind(), NotFound | NotADirectory)
}

fn time(number: u64) -> Timestamp {
    let micros = i64::try_from(number).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
