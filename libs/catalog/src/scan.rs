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
use crate::{CatalogError, Lookups};

/// How long a scan may read from one state of the catalog. Files that were replaced meanwhile are swept a quarter of
/// an hour later at the earliest, so a scan that moves on well before that never misses one.
const ONE_STATE: Duration = Duration::from_secs(120);

/// Resources with their URIs.
pub type ResourceScan = Scan<(ResourceUri, ResourceRecord)>;
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

/// A stream of records in the order of their keys; it holds a few blocks at a time, however many records there are.
///
/// It shows the catalog as it was when the scan began; what is committed meanwhile does not appear. A scan that lasts
/// longer than two minutes goes on with the state of that moment, from the key it has come to.
/// After an error it ends.
pub struct Scan<T>(BoxStream<'static, Result<T, CatalogError>>);

/// A scan under way.
struct Cursor {
    lookups: Lookups,
    iterator: DbIterator,
    opened: Instant,
    last: Option<Bytes>,
    end: Bytes,
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
        let iterator = lookups.iterate(from, end.clone()).await?;
        let cursor = Cursor { lookups, iterator, opened: Instant::now(), last: None, end };
        let records = stream::try_unfold(cursor, |mut cursor| async move {
            let next = cursor.next::<S>().await?;
            Ok(next.map(|record| (record, cursor)))
        });
        Ok(Self(records.boxed()))
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
    async fn next<S: KeySpace>(&mut self) -> Result<Option<(S::Name, S::Record)>, CatalogError> {
        if let Some(last) = &self.last
            && self.opened.elapsed() > ONE_STATE
        {
            self.iterator = self.lookups.iterate(Bound::Excluded(last.clone()), self.end.clone()).await?;
            self.opened = Instant::now();
        }
        let next =
            self.iterator.next().await.map_err(|error| CatalogError::reading(self.lookups.path(), error))?;
        let Some(found) = next else { return Ok(None) };
        let name = &found.key[1..];
        let record = self.lookups.read_record::<S>(name, &found.value)?;
        let name = S::read_name(name).map_err(|why| self.lookups.corrupt::<S>(name, why))?;
        self.last = Some(found.key);
        Ok(Some((name, record)))
    }
}
