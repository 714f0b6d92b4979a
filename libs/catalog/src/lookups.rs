//! Reads: the same for the writer and for readers.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use slatedb::config::{DurabilityLevel, ReadOptions, ScanOptions};
use slatedb::{Db, DbIterator, DbReader};

use crate::CatalogError;
use crate::keyspace::{self, Key, KeySpace};
use crate::tally::{LookupCounts, Tally};

/// Concurrent reads for a request of several records.
const IN_FLIGHT: usize = 32;

/// How many bytes a scan reads of each file at a time.
const READ_AHEAD: usize = 128 * 1024;

/// How a cursor moves through records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stride {
    /// To each next record: a piece of each file is read and decompressed while the previous one is
    /// processed.
    Each,
    /// Over many records: reading ahead would be wasted.
    Far,
}

/// All reads of a catalog, for its writer ([`Catalog`](crate::Catalog)) and for readers
/// ([`CatalogReader`](crate::CatalogReader)) alike.
///
/// Reads see durable records only, never a batch that a crash could take back. Cheap to clone; a clone that
/// outlives its catalog returns [`CatalogError::Closed`].
#[derive(Clone)]
pub struct Lookups {
    source: Source,
    path: Arc<str>,
    tally: Arc<Tally>,
}

/// The database that is read.
#[derive(Clone)]
pub(crate) enum Source {
    /// The one writer's own database.
    Writer(Db),
    /// A reader's database, which follows the writer.
    Reader(Arc<DbReader>),
}

impl Stride {
    /// Pieces of each file that are in memory or requested.
    fn pieces(self) -> usize {
        match self {
            Self::Each => 2,
            Self::Far => 1,
        }
    }
}

impl Lookups {
    pub(crate) fn new(source: Source, path: &str) -> Self {
        Self { source, path: path.into(), tally: Arc::default() }
    }

    /// The catalog's path in its store.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Counters of the reads and writes since it was opened, by all its clones.
    pub fn asked(&self) -> LookupCounts {
        self.tally.asked()
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) async fn get<S: KeySpace>(&self, key: &Key<S>) -> Result<Option<S::Record>, CatalogError> {
        self.tally.look_up();
        let options = ReadOptions::new().with_durability_filter(DurabilityLevel::Remote);
        let found = match &self.source {
            Source::Writer(db) => db.get_with_options(key.bytes(), &options).await,
            Source::Reader(reader) => reader.get_with_options(key.bytes(), &options).await,
        };
        let value = found.map_err(|error| CatalogError::reading(&self.path, error))?;
        value.map(|bytes| self.read_record::<S>(&key.bytes()[1..], &bytes)).transpose()
    }

    pub(crate) async fn get_many<S: KeySpace>(
        &self,
        keys: impl Iterator<Item = Key<S>>,
    ) -> Result<Vec<Option<S::Record>>, CatalogError> {
        let keys: Vec<Key<S>> = keys.collect();
        stream::iter(keys)
            .map(|key| {
                let lookups = self.clone();
                async move { lookups.get(&key).await }
            })
            .buffered(IN_FLIGHT)
            .try_collect()
            .await
    }

    /// Counts the records of a space without decoding them.
    pub(crate) async fn count<S: KeySpace>(&self) -> Result<u64, CatalogError> {
        let (from, end) = keyspace::all_of::<S>();
        let mut records = self.iterate(from, end, Stride::Each).await?;
        let mut count = 0;
        while records.next().await.map_err(|error| CatalogError::reading(&self.path, error))?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Whether there is no record in a space.
    pub(crate) async fn is_empty<S: KeySpace>(&self) -> Result<bool, CatalogError> {
        let (from, end) = keyspace::all_of::<S>();
        let first = self.iterate(from, end, Stride::Far).await?.next().await;
        Ok(first.map_err(|error| CatalogError::reading(&self.path, error))?.is_none())
    }

    /// The records between two keys, as they are now.
    pub(crate) async fn iterate(
        &self,
        from: Bound<Bytes>,
        end: Bytes,
        stride: Stride,
    ) -> Result<DbIterator, CatalogError> {
        let options = ScanOptions { durability_filter: DurabilityLevel::Remote, ..ScanOptions::default() }
            .with_read_ahead_bytes(READ_AHEAD)
            .with_max_fetch_tasks(stride.pieces());
        let range = (from, Bound::Excluded(end));
        let iterator = match &self.source {
            Source::Writer(db) => db.scan_with_options(range, &options).await,
            Source::Reader(reader) => reader.scan_with_options(range, &options).await,
        };
        iterator.map_err(|error| CatalogError::reading(&self.path, error))
    }

    /// Identifies the state that a read starting now would use.
    pub(crate) fn state(&self) -> u64 {
        match &self.source {
            Source::Writer(db) => db.status().durable_seq,
            Source::Reader(reader) => reader.status().durable_seq,
        }
    }

    pub(crate) fn read_record<S: KeySpace>(
        &self,
        name: &[u8],
        value: &[u8],
    ) -> Result<S::Record, CatalogError> {
        S::read(value).map_err(|error| self.corrupt::<S>(name, error))
    }

    /// Decodes a key and its record.
    pub(crate) fn read_entry<S: KeySpace>(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<(S::Name, S::Record), CatalogError> {
        let name = &key[1..];
        let record = self.read_record::<S>(name, value)?;
        let name = S::read_name(name).map_err(|why| self.corrupt::<S>(name, why))?;
        Ok((name, record))
    }

    pub(crate) fn corrupt<S: KeySpace>(&self, name: &[u8], why: impl ToString) -> CatalogError {
        let key = format!("{} {}", S::NAME, S::show_name(name));
        CatalogError::Corrupt { path: self.path().to_owned(), key, why: why.to_string() }
    }
}

impl std::fmt::Debug for Lookups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lookups").field("path", &self.path).finish_non_exhaustive()
    }
}
