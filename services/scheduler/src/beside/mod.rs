//! Merge join of document entries ("words") and catalog records, both sorted by URI. Each side is read once whatever
//! the order of documents, and memory is constant (docs/adr/0022, docs/adr/0038).

mod silence;
mod word;
mod words;

use std::cmp::Ordering;
use std::vec;

use catalog::{Catalog, CatalogError, ResourceWalk, UnreadResource};
use futures::StreamExt as _;
use model::Holding;
use tokio::sync::mpsc;

use crate::error::HarvestError;
use crate::options::Filter;
pub(crate) use silence::{Sayings, Silence, Unnamed};
pub(crate) use word::Word;
use words::{BATCHES_AHEAD, Sorted};
pub(crate) use words::{Counting, Words};

/// Records per batch.
const BATCH: usize = 512;
/// Words on one resource that are returned together.
const MOST_WORDS: usize = 256;

/// Which records are joined with the words.
#[derive(Debug, Clone)]
pub(crate) enum Records {
    /// All wanted records, so that resources without a word are met too.
    All(Filter),
    /// Records of the resources that have a word.
    Named,
}

/// A catalog record, of which only the stored resource was read.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) unread: UnreadResource,
    pub(crate) holding: Holding,
}

/// A resource with words, a record, or both.
#[derive(Debug)]
pub(crate) struct Met {
    /// Its words, in the order in which they count.
    pub(crate) words: Said,
    pub(crate) known: Option<Known>,
    /// More words on the resource that was returned last. They come without records.
    pub(crate) goes_on: bool,
}

/// Words on one resource; usually one.
#[derive(Debug, Default)]
pub(crate) struct Said {
    first: Option<Word>,
    more: Vec<Word>,
}

/// Both sides, as far as they are not processed yet.
pub(crate) struct Beside {
    source: Source,
    words: Side<Word>,
    records: Side<Known>,
    /// The resource that has more words than are returned together.
    unfinished: Option<Vec<u8>>,
}

/// Words, with the records of their resources.
type WordsAndRecords = Result<(Vec<Word>, Vec<Known>), HarvestError>;

/// Input of the join.
enum Source {
    /// Two independent streams.
    Apart { words: Sorted, records: mpsc::Receiver<Result<Vec<Known>, CatalogError>> },
    /// Words, with the records of their resources.
    Together(mpsc::Receiver<WordsAndRecords>),
}

/// One side: the received batch, and its first item.
struct Side<T> {
    batch: vec::IntoIter<T>,
    next: Option<T>,
}

impl Beside {
    /// Starts to join words with the current records of a catalog.
    pub(crate) async fn begin(
        catalog: &Catalog,
        words: Sorted,
        records: Records,
    ) -> Result<Self, HarvestError> {
        let source = match records {
            Records::All(filter) => Source::Apart { words, records: all(catalog, filter).await? },
            Records::Named => Source::Together(named(words, catalog.walk_resources())),
        };
        Ok(Self { source, words: Side::default(), records: Side::default(), unfinished: None })
    }

    /// The next resource.
    ///
    /// # Errors
    /// [`HarvestError::Temporary`] when words cannot be read back, [`HarvestError::Catalog`] when records cannot be
    /// read.
    pub(crate) async fn next(&mut self) -> Result<Option<Met>, HarvestError> {
        self.fill_words().await?;
        self.fill_records().await?;
        let order = match (&self.words.next, &self.records.next) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(word), Some(known)) => word.uri().cmp(known.unread.uri_bytes()),
        };
        let known = if order.is_ge() { self.records.next.take() } else { None };
        let mut words = Said { first: self.words.next.take_if(|_| order.is_le()), more: Vec::new() };
        let mut goes_on = false;
        if let Some(first) = &words.first {
            goes_on = self.unfinished.take().is_some_and(|uri| uri == first.uri());
            self.fill_words().await?;
            while let Some(next) = self.words.next.take_if(|next| next.uri() == first.uri()) {
                words.more.push(next);
                if words.more.len() == MOST_WORDS {
                    self.unfinished = Some(first.uri().to_vec());
                    break;
                }
                self.fill_words().await?;
            }
        }
        Ok(Some(Met { words, known, goes_on }))
    }

    /// Fetches the next word, if there is one.
    async fn fill_words(&mut self) -> Result<(), HarvestError> {
        while !self.words.is_filled() {
            let batch = match &mut self.source {
                Source::Apart { words, .. } => match words.recv().await {
                    Some(batch) => batch?,
                    None => return Ok(()),
                },
                Source::Together(both) => match both.recv().await {
                    Some(both) => {
                        let (words, records) = both?;
                        self.records.batch = records.into_iter();
                        words
                    }
                    None => return Ok(()),
                },
            };
            self.words.batch = batch.into_iter();
        }
        Ok(())
    }

    /// Fetches the next record, if there is one.
    async fn fill_records(&mut self) -> Result<(), HarvestError> {
        while !self.records.is_filled() {
            // Records that come with words were all received with the words before.
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

impl Met {
    /// The bytes of its URI.
    pub(crate) fn uri(&self) -> &[u8] {
        match (&self.words.first, &self.known) {
            (Some(word), _) => word.uri(),
            (None, Some(known)) => known.unread.uri_bytes(),
            (None, None) => &[],
        }
    }
}

impl Said {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Word> {
        self.first.iter().chain(&self.more)
    }

    /// Whether more words may follow.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.more.len() == MOST_WORDS
    }

    /// The only word, if there is exactly one.
    pub(crate) fn only(&self) -> Option<&Word> {
        self.first.as_ref().filter(|_| self.more.is_empty())
    }
}

/// All records of wanted resources, tombstones included.
async fn all(
    catalog: &Catalog,
    filter: Filter,
) -> Result<mpsc::Receiver<Result<Vec<Known>, CatalogError>>, HarvestError> {
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
fn look_at(batch: Vec<UnreadResource>, filter: &Filter) -> Result<Vec<Known>, CatalogError> {
    let mut known = Vec::with_capacity(batch.len());
    for unread in batch {
        if filter.takes_all() || filter.takes(unread.uri()?) {
            let holding = unread.holding()?;
            known.push(Known { unread, holding });
        }
    }
    Ok(known)
}

/// The words, each batch with the records of its resources.
fn named(mut words: Sorted, mut walk: ResourceWalk) -> mpsc::Receiver<WordsAndRecords> {
    let (both, receiver) = mpsc::channel(BATCHES_AHEAD);
    tokio::spawn(async move {
        let mut last = Vec::new();
        while let Some(batch) = words.recv().await {
            let found = match batch {
                Ok(words) => match find(&mut walk, &words, &mut last).await {
                    Ok(known) => Ok((words, known)),
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

/// The records of the resources of these words, except the last one looked up.
async fn find(
    walk: &mut ResourceWalk,
    words: &[Word],
    last: &mut Vec<u8>,
) -> Result<Vec<Known>, CatalogError> {
    let mut found = Vec::new();
    for word in words {
        if word.uri() == last.as_slice() {
            continue;
        }
        last.clear();
        last.extend_from_slice(word.uri());
        if let Some(unread) = walk.find(word.uri()).await? {
            let holding = unread.holding()?;
            found.push(Known { unread, holding });
        }
    }
    Ok(found)
}
