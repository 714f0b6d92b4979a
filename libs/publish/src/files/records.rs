//! The files of a directory, as records.

use std::collections::HashMap;

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, future};
use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::Change;

use super::FOLDER;
use super::beneath::{self, is_missing};
use super::directory::FileRecords;
use super::row::Row;
use super::spelling::{order, path};
use super::streams::{pieces, rows};
use crate::names::{Named, PublishedPath};
use crate::records::{Body, BodyError, Changes, FileError, Pieces, Records, Resources, Stored, Told};
use crate::scanned::Scanned;
use crate::{Base, PublishError};

#[async_trait]
impl Records for FileRecords {
    /// Scans the directory, or what has changed there.
    async fn refresh(&self, published: u64, now: Timestamp) -> Result<Option<Scanned>, PublishError> {
        self.scan(published, now).await.map(Some)
    }

    async fn next_change(&self) -> Result<u64, PublishError> {
        Ok(self.last()?.rows.head.changed + 1)
    }

    /// False if the rows of the last scan are lost: without them, no scan finds which files were deleted.
    async fn continues(&self, from: u64) -> Result<bool, PublishError> {
        Ok(from == 0 || self.last()?.rows.head.begun < from)
    }

    async fn last_change(&self) -> Result<Option<Timestamp>, PublishError> {
        Ok(Some(time(self.last()?.rows.head.changed)))
    }

    async fn resources<'a>(&'a self, after: Option<&ResourceUri>) -> Result<Resources<'a>, PublishError> {
        let after = after.and_then(|after| path(&self.url, after));
        let rows = rows(self.last()?.rows.read()).try_filter_map(move |row| {
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
        let told = move |row: Row| -> Result<Told, PublishError> {
            let kind = match (row.sha256, row.created) {
                (None, _) => Change::Deleted,
                (Some(_), true) => Change::Created,
                (Some(_), false) => Change::Updated,
            };
            let stored = row.sha256.map(|sha256| self.stored(&row.path, &row, sha256));
            let uri = self.uri(&row.path)?;
            Ok(Told { uri, kind, at: time(row.changed), stored, links: Vec::new() })
        };
        Ok(self.last()?.changes(from..end).map(move |row| row.and_then(told)).boxed())
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

    fn at(&self, path: &str) -> Option<Named> {
        self.uri_at(path).map(Named::Resource)
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

fn time(number: u64) -> Timestamp {
    let micros = i64::try_from(number).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
