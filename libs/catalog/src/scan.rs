//! Scans: records in the order of their keys, one at a time.

use std::ops::Bound;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use model::{
    ChangeLogEntry, DocumentRecord, PackageRecord, PageRecord, PendingRecord, ProblemRecord, ResourceRecord,
    ResourceUri, Subject,
};
use slatedb::DbIterator;
use tokio::time::Instant;

use crate::CatalogError;
use crate::keyspace::{self, Key, KeySpace};
use crate::lookups::{Lookups, Stride};

/// How long a scan may read from one state of the catalog. Replaced files are removed a quarter of an hour
/// later at the earliest, so a scan that moves on well before that never misses one.
const ONE_STATE: Duration = Duration::from_secs(120);

/// Resources with their URIs.
pub type ResourceScan = Scan<(ResourceUri, ResourceRecord)>;
/// Pending records with their URIs.
pub type PendingScan = Scan<(ResourceUri, PendingRecord)>;
/// Documents with their URIs.
pub type DocumentScan = Scan<(String, DocumentRecord)>;
/// Packages with their URIs.
pub type PackageScan = Scan<(String, PackageRecord)>;
/// Landing pages with their URIs.
pub type PageScan = Scan<(ResourceUri, PageRecord)>;
/// Problems with their subjects.
pub type ProblemScan = Scan<(Subject, ProblemRecord)>;
/// Entries of the change log with their numbers.
pub type ChangeScan = Scan<(u64, ChangeLogEntry)>;

/// A stream of records in the order of their keys. It holds a few blocks in memory, however many records
/// there are.
///
/// It shows the catalog as it was when the scan began, without later commits. After two minutes it continues
/// from its position with the state of that moment. It ends after an error.
pub struct Scan<T>(BoxStream<'static, Result<T, CatalogError>>);

/// A running scan.
pub(crate) struct Cursor {
    lookups: Lookups,
    iterator: DbIterator,
    opened: Instant,
    last: Option<Bytes>,
    end: Bytes,
    stride: Stride,
}

impl<T: Send + 'static> Scan<T> {
    pub(crate) fn new(stream: BoxStream<'static, Result<T, CatalogError>>) -> Self {
        Self(stream)
    }
}

impl<N: Send + 'static, R: Send + 'static> Scan<(N, R)> {
    async fn open<S: KeySpace<Name = N, Record = R>>(
        lookups: Lookups,
        from: Bound<Bytes>,
        end: Bytes,
    ) -> Result<Self, CatalogError> {
        let cursor = Cursor::open(lookups, from, end, Stride::Each).await?;
        let records = stream::try_unfold(cursor, |mut cursor| async move {
            let next = cursor.next::<S>().await?;
            Ok(next.map(|record| (record, cursor)))
        });
        Ok(Self(records.boxed()))
    }
}

impl Lookups {
    /// Scans names that begin with `prefix`, from the one after `after` on.
    pub(crate) async fn scan<S: KeySpace>(
        &self,
        prefix: &[u8],
        after: Option<Key<S>>,
    ) -> Result<Scan<(S::Name, S::Record)>, CatalogError> {
        let first = Key::<S>::of(prefix).bytes().clone();
        let end = keyspace::end_of(&first);
        let from = match after {
            // Nothing can follow, and the LSM rejects an empty range.
            Some(after) if *after.bytes() >= end => return Ok(Scan::new(stream::empty().boxed())),
            Some(after) if *after.bytes() >= first => Bound::Excluded(after.bytes().clone()),
            _ => Bound::Included(first),
        };
        Scan::open::<S>(self.clone(), from, end).await
    }
}

impl<T> Stream for Scan<T> {
    type Item = Result<T, CatalogError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

impl<T> std::fmt::Debug for Scan<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scan")
    }
}

impl Cursor {
    /// Boxed: it is large, and moves with each record.
    pub(crate) async fn open(
        lookups: Lookups,
        from: Bound<Bytes>,
        end: Bytes,
        stride: Stride,
    ) -> Result<Box<Self>, CatalogError> {
        let iterator = lookups.iterate(from, end.clone(), stride).await?;
        Ok(Box::new(Self { lookups, iterator, opened: Instant::now(), last: None, end, stride }))
    }

    async fn next<S: KeySpace>(&mut self) -> Result<Option<(S::Name, S::Record)>, CatalogError> {
        let Some((key, value)) = self.found().await? else { return Ok(None) };
        self.lookups.read_entry::<S>(&key, &value).map(Some)
    }

    /// The next key and its record.
    pub(crate) async fn found(&mut self) -> Result<Option<(Bytes, Bytes)>, CatalogError> {
        // Records in memory are returned without waiting. Without a pause now and then a long scan could not
        // be cancelled, and would block the other tasks of its thread.
        tokio::task::consume_budget().await;
        if let Some(last) = &self.last
            && self.opened.elapsed() > ONE_STATE
        {
            self.iterator =
                self.lookups.iterate(Bound::Excluded(last.clone()), self.end.clone(), self.stride).await?;
            self.opened = Instant::now();
        }
        let next =
            self.iterator.next().await.map_err(|error| CatalogError::reading(self.lookups.path(), error))?;
        let Some(found) = next else { return Ok(None) };
        self.last = Some(found.key.clone());
        Ok(Some((found.key, found.value)))
    }

    /// Skips to `key`, which is after all that was found. The next record may be before it all the same, when
    /// the scan continues with a later state.
    pub(crate) async fn seek(&mut self, key: &[u8]) -> Result<(), CatalogError> {
        let found = self.iterator.seek(key).await;
        found.map_err(|error| CatalogError::reading(self.lookups.path(), error))
    }
}
