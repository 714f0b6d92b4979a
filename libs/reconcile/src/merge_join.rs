//! Merge join of document entries ("entries") and catalog records, both sorted by URI. Each side is read once whatever
//! the order of documents, and memory is constant (docs/adr/0022, docs/adr/0038).

use std::cmp::Ordering;
use std::vec;

use catalog::{Catalog, CatalogError, LazyResource, ResourceWalk};
use futures::StreamExt as _;
use model::Holding;
use planning::Filter;
use tokio::sync::mpsc;

use crate::entry_sorter::{BATCHES_AHEAD, SortedEntries};
use crate::error::ReconcileError;
use crate::spooled_entry::SpooledEntry;

/// Records per batch.
const BATCH: usize = 512;
/// EntrySorter on one resource that are returned together.
const MAX_ENTRIES: usize = 256;

/// Which records are joined with the entries.
#[derive(Debug, Clone)]
pub enum Records {
    /// All wanted records, so that resources without a entry are met too.
    All(Filter),
    /// Records of the resources that have a entry.
    Named,
}

/// A catalog record, of which only the stored resource was read.
#[derive(Debug)]
pub struct CatalogRow {
    /// The record, to be read if needed.
    pub unread: LazyResource,
    /// Its stored bitstream and its sets.
    pub holding: Holding,
}

/// A resource with entries, a record, or both.
#[derive(Debug)]
pub struct Joined {
    /// Its entries, in the order in which they count.
    pub entries: ResourceEntries,
    /// Its record, if there is one.
    pub known: Option<CatalogRow>,
    /// More entries on the resource that was returned last. They come without records.
    pub goes_on: bool,
}

/// EntrySorter on one resource; usually one.
#[derive(Debug, Default)]
pub struct ResourceEntries {
    first: Option<SpooledEntry>,
    more: Vec<SpooledEntry>,
}

/// Both sides, as far as they are not processed yet.
pub struct MergeJoin {
    source: Source,
    entries: Side<SpooledEntry>,
    records: Side<CatalogRow>,
    /// The resource that has more entries than are returned together.
    unfinished: Option<Vec<u8>>,
}

/// EntrySorter, with the records of their resources.
type EntriesAndRows = Result<(Vec<SpooledEntry>, Vec<CatalogRow>), ReconcileError>;

/// Input of the join.
enum Source {
    /// Two independent streams.
    Apart { entries: SortedEntries, records: mpsc::Receiver<Result<Vec<CatalogRow>, CatalogError>> },
    /// EntrySorter, with the records of their resources.
    Together(mpsc::Receiver<EntriesAndRows>),
}

/// One side: the received batch, and its first item.
struct Side<T> {
    batch: vec::IntoIter<T>,
    next: Option<T>,
}

impl MergeJoin {
    /// Starts to join entries with the current records of a catalog.
    pub async fn begin(
        catalog: &Catalog,
        entries: SortedEntries,
        records: Records,
    ) -> Result<Self, ReconcileError> {
        let source = match records {
            Records::All(filter) => Source::Apart { entries, records: all(catalog, filter).await? },
            Records::Named => Source::Together(named(entries, catalog.walk_resources())),
        };
        Ok(Self { source, entries: Side::default(), records: Side::default(), unfinished: None })
    }

    /// The next resource.
    ///
    /// # Errors
    /// [`ReconcileError::Spool`] when entries cannot be read back, [`ReconcileError::Catalog`] when records cannot be
    /// read.
    pub async fn next(&mut self) -> Result<Option<Joined>, ReconcileError> {
        self.fill_words().await?;
        self.fill_records().await?;
        let order = match (&self.entries.next, &self.records.next) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(entry), Some(known)) => entry.uri().cmp(known.unread.uri_bytes()),
        };
        let known = if order.is_ge() { self.records.next.take() } else { None };
        let mut entries =
            ResourceEntries { first: self.entries.next.take_if(|_| order.is_le()), more: Vec::new() };
        let mut goes_on = false;
        if let Some(first) = &entries.first {
            goes_on = self.unfinished.take().is_some_and(|uri| uri == first.uri());
            self.fill_words().await?;
            while let Some(next) = self.entries.next.take_if(|next| next.uri() == first.uri()) {
                entries.more.push(next);
                if entries.more.len() == MAX_ENTRIES {
                    self.unfinished = Some(first.uri().to_vec());
                    break;
                }
                self.fill_words().await?;
            }
        }
        Ok(Some(Joined { entries, known, goes_on }))
    }

    /// Fetches the next entry, if there is one.
    async fn fill_words(&mut self) -> Result<(), ReconcileError> {
        while !self.entries.is_filled() {
            let batch = match &mut self.source {
                Source::Apart { entries, .. } => match entries.recv().await {
                    Some(batch) => batch?,
                    None => return Ok(()),
                },
                Source::Together(both) => match both.recv().await {
                    Some(both) => {
                        let (entries, records) = both?;
                        self.records.batch = records.into_iter();
                        entries
                    }
                    None => return Ok(()),
                },
            };
            self.entries.batch = batch.into_iter();
        }
        Ok(())
    }

    /// Fetches the next record, if there is one.
    async fn fill_records(&mut self) -> Result<(), ReconcileError> {
        while !self.records.is_filled() {
            // Records that come with entries were all received with the entries before.
            let Source::Apart { records, .. } = &mut self.source else { return Ok(()) };
            let Some(batch) = records.recv().await else { return Ok(()) };
            self.records.batch = batch?.into_iter();
        }
        Ok(())
    }
}

impl<T> Default for Side<T> {
    fn default() -> Self {
        Self { batch: Vec::new().into_iter(), next: None }
    }
}

impl<T> Side<T> {
    /// Whether an item of the received batch is available.
    fn is_filled(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.batch.next();
        }
        self.next.is_some()
    }
}

impl Joined {
    /// The bytes of its URI.
    pub fn uri(&self) -> &[u8] {
        match (&self.entries.first, &self.known) {
            (Some(entry), _) => entry.uri(),
            (None, Some(known)) => known.unread.uri_bytes(),
            (None, None) => &[],
        }
    }
}

impl ResourceEntries {
    /// All of them, in the order in which they count.
    pub fn iter(&self) -> impl Iterator<Item = &SpooledEntry> {
        self.first.iter().chain(&self.more)
    }

    /// Whether more entries may follow.
    pub fn is_cut_short(&self) -> bool {
        self.more.len() == MAX_ENTRIES
    }

    /// The only entry, if there is exactly one.
    pub fn only(&self) -> Option<&SpooledEntry> {
        self.first.as_ref().filter(|_| self.more.is_empty())
    }
}

/// All records of wanted resources, tombstones included.
async fn all(
    catalog: &Catalog,
    filter: Filter,
) -> Result<mpsc::Receiver<Result<Vec<CatalogRow>, CatalogError>>, ReconcileError> {
    let mut scan = catalog.scan_resources_unread(BATCH).await?;
    // Two tasks, because reading the records takes as long as finding them.
    let (found, mut unread) = mpsc::channel(BATCHES_AHEAD);
    tokio::spawn(async move {
        while let Some(batch) = scan.next().await {
            // The receiver is gone, so the rest is not needed.
            if found.send(batch).await.is_err() {
                return;
            }
        }
    });
    let (records, receiver) = mpsc::channel(BATCHES_AHEAD);
    tokio::spawn(async move {
        while let Some(batch) = unread.recv().await {
            let known = batch.and_then(|batch| look_at(batch, &filter));
            if records.send(known).await.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// Reads the stored state of each wanted resource.
fn look_at(batch: Vec<LazyResource>, filter: &Filter) -> Result<Vec<CatalogRow>, CatalogError> {
    let mut known = Vec::with_capacity(batch.len());
    for unread in batch {
        if filter.takes_all() || filter.takes(unread.uri()?) {
            let holding = unread.holding()?;
            known.push(CatalogRow { unread, holding });
        }
    }
    Ok(known)
}

/// The entries, each batch with the records of its resources.
fn named(mut entries: SortedEntries, mut walk: ResourceWalk) -> mpsc::Receiver<EntriesAndRows> {
    let (both, receiver) = mpsc::channel(BATCHES_AHEAD);
    tokio::spawn(async move {
        let mut last = Vec::new();
        while let Some(batch) = entries.recv().await {
            let found = match batch {
                Ok(entries) => match find(&mut walk, &entries, &mut last).await {
                    Ok(known) => Ok((entries, known)),
                    Err(error) => Err(error.into()),
                },
                Err(error) => Err(error.into()),
            };
            // The receiver is gone, so the rest is not needed.
            if both.send(found).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// The records of the resources of these entries, except the last one looked up.
async fn find(
    walk: &mut ResourceWalk,
    entries: &[SpooledEntry],
    last: &mut Vec<u8>,
) -> Result<Vec<CatalogRow>, CatalogError> {
    let mut found = Vec::new();
    for entry in entries {
        if entry.uri() == last.as_slice() {
            continue;
        }
        last.clear();
        last.extend_from_slice(entry.uri());
        if let Some(unread) = walk.find(entry.uri()).await? {
            let holding = unread.holding()?;
            found.push(CatalogRow { unread, holding });
        }
    }
    Ok(found)
}
