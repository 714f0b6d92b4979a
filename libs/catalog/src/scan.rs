//! Scans: records in the order of their keys, one at a time.

use std::ops::Bound;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use model::{
    ChangeLogEntry, DocumentRecord, PackageRecord, PendingRecord, ProblemRecord, ResourceRecord, ResourceUri,
    Subject,
};
use slatedb::DbIterator;
use tokio::time::Instant;

use crate::keyspace::KeySpace;
use crate::lazy_resource::LazyResource;
use crate::lookups::Stride;
use crate::resource_summary::ResourceSummary;
use crate::{CatalogError, Lookups};

/// How long a scan may read from one state of the catalog. Replaced files are removed a quarter of an hour
/// later at the earliest, so a scan that moves on well before that never misses one.
const ONE_STATE: Duration = Duration::from_secs(120);

/// Resources with their URIs.
pub type ResourceScan = Scan<(ResourceUri, ResourceRecord)>;
/// Resources in their encoded form, some at a time.
pub type UnreadScan = Scan<Vec<LazyResource>>;
/// Resources with all of their records.
pub type ResourceSummaryScan = Scan<ResourceSummary>;
/// Pending records with their URIs.
pub type PendingScan = Scan<(ResourceUri, PendingRecord)>;
/// Documents with their URIs.
pub type DocumentScan = Scan<(String, DocumentRecord)>;
/// Packages with their URIs.
pub type PackageScan = Scan<(String, PackageRecord)>;
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
    pub(crate) async fn open<S: KeySpace<Name = N, Record = R>>(
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

impl Scan<Vec<LazyResource>> {
    /// Encoded records, this many at a time.
    pub(crate) async fn unread(
        lookups: Lookups,
        from: Bound<Bytes>,
        end: Bytes,
        at_a_time: usize,
    ) -> Result<Self, CatalogError> {
        let cursor = Cursor::open(lookups, from, end, Stride::Each).await?;
        let batches = stream::try_unfold(cursor, move |mut cursor| async move {
            let mut batch = Vec::with_capacity(at_a_time);
            while batch.len() < at_a_time
                && let Some((key, value)) = cursor.found().await?
            {
                batch.push(LazyResource::new(&cursor.lookups, key, value));
            }
            Ok((!batch.is_empty()).then_some((batch, cursor)))
        });
        Ok(Self(batches.boxed()))
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
