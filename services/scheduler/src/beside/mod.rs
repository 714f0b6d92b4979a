//! Words and records beside each other: what documents say and what the catalog has, both in the order of URIs, so that each is gone through once whatever
//! order documents have, and memory is flat (docs/adr/0022, docs/adr/0038).

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

/// Records that travel together.
const BATCH: usize = 512;
/// Words on one resource that are looked at together.
const MOST_WORDS: usize = 256;

/// Which records are laid beside the words.
#[derive(Debug, Clone)]
pub(crate) enum Records {
    /// All that are wanted: what no word names is met too.
    All(Filter),
    /// Those that words name.
    Named,
}

/// A record of the catalog, of which what is held was read.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) unread: UnreadResource,
    pub(crate) holding: Holding,
}

/// A resource that is named, known, or both.
#[derive(Debug)]
pub(crate) struct Met {
    /// What is said of it, in the order in which words count.
    pub(crate) words: Said,
    pub(crate) known: Option<Known>,
    /// The words go on with a resource that was met before: no record is met with them.
    pub(crate) goes_on: bool,
}

/// Words on one resource: mostly there is one.
#[derive(Debug, Default)]
pub(crate) struct Said {
    first: Option<Word>,
    more: Vec<Word>,
}

/// Both sides, as far as they were not looked at yet.
pub(crate) struct Beside {
    source: Source,
    words: Side<Word>,
    records: Side<Known>,
    /// The resource whose words were too many to be looked at together.
    unfinished: Option<Vec<u8>>,
}

/// Words, with the records of the resources that they name.
type WordsAndRecords = Result<(Vec<Word>, Vec<Known>), HarvestError>;

/// Where both sides come from, some at a time.
enum Source {
    /// Each by itself.
    Apart { words: Sorted, records: mpsc::Receiver<Result<Vec<Known>, CatalogError>> },
    /// Words, with the records of the resources that they name.
    Together(mpsc::Receiver<WordsAndRecords>),
}

/// One side: what has come, and the first of it.
struct Side<T> {
    batch: vec::IntoIter<T>,
    next: Option<T>,
}

impl Beside {
    /// Begins to lay words beside the records of a catalog, as these are now.
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
    /// [`HarvestError::Temporary`] when words cannot be read back, [`HarvestError::Catalog`] when records cannot be read.
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

    /// Has the next word at hand, if there is one.
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

    /// Has the next record at hand, if there is one.
    async fn fill_records(&mut self) -> Result<(), HarvestError> {
        while !self.records.is_filled() {
            // Those that come with words were all met with the words before.
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
    /// Whether one is at hand, of what has come.
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

    /// The only word, where there is but one.
    pub(crate) fn only(&self) -> Option<&Word> {
        self.first.as_ref().filter(|_| self.more.is_empty())
    }
}

/// All records of wanted resources, tombstones too.
async fn all(
    catalog: &Catalog,
    filter: Filter,
) -> Result<mpsc::Receiver<Result<Vec<Known>, CatalogError>>, HarvestError> {
    let mut scan = catalog.scan_resources_unread(BATCH).await?;
    // Two tasks: to read the records takes as long as to find them.
    let (found, mut unread) = mpsc::channel(BATCHES_AHEAD);
    tokio::spawn(async move {
        while let Some(batch) = scan.next().await {
            // Whoever listens no more has no use for it.
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

/// Reads what is held of each resource that is wanted.
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

/// The words, each batch with the records of the resources that it names.
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
            // Whoever listens no more has no use for it.
            if both.send(found).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// The records of the resources that words name, but for the one that was asked for last.
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
