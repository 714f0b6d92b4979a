//! External sort of the entries of documents, by URI on the disk. The result is merge-joined with the
//! catalog, which has the same order. That takes one pass and constant memory, whatever their number.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Seek, Write};

use model::ResourceUri;
use planning::ListedEntry;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::SpoolError;
use crate::runs::{Merge, Runs};
use crate::spooled_entry::{HEAD, SpooledEntry, encode, encode_name, number_at};

/// Bytes of entries that are sorted in memory. Twice as many are in memory while one portion is written and the next
/// one fills.
const PORTION: usize = 24 * 1024 * 1024;
/// Spare capacity for the entries that complete a portion.
const SPARE: usize = 512 * 1024;
/// Up to this size, entries need no file.
const FEW: usize = 1024 * 1024;
/// Entries per batch.
const BATCH: usize = 512;
/// Bytes of entries per batch: links can make an entry much longer than usual.
const BATCH_BYTES: usize = 512 * 1024;
/// Batches that may wait for the join.
pub(crate) const BATCHES_AHEAD: usize = 4;

/// Collects entries.
#[derive(Debug)]
pub struct EntrySorter {
    portion: Portion,
    limit: usize,
    runs: Runs,
    /// The previous portion; empty again once it is written.
    writing: Option<JoinHandle<io::Result<(File, Portion)>>>,
    /// Documents whose entries were taken back.
    void: HashSet<usize>,
}

/// Entries that are sorted in memory.
#[derive(Debug, Default)]
struct Portion {
    bytes: Vec<u8>,
    /// Place of each entry.
    places: Vec<(usize, usize)>,
}

/// Which entries on one resource count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// All of them, in input order.
    All,
    /// The last one: the later of two entries, unless it is certainly of an earlier time. Entries of links count only
    /// where there is no other.
    Last,
}

/// Entries sorted by URI, in batches.
pub type SortedEntries = mpsc::Receiver<io::Result<Vec<SpooledEntry>>>;

impl Default for EntrySorter {
    fn default() -> Self {
        Self::new()
    }
}

impl EntrySorter {
    /// Starts without entries.
    pub fn new() -> Self {
        Self::with(PORTION)
    }

    fn with(limit: usize) -> Self {
        Self {
            portion: Portion::default(),
            limit,
            runs: Runs::default(),
            writing: None,
            void: HashSet::new(),
        }
    }

    /// Adds an entry of the document with this number. The caller must call `make_room` now and then.
    pub fn add(&mut self, entry: &ListedEntry, document: usize) -> Result<(), SpoolError> {
        Ok(self.portion.add(self.limit, |bytes| encode(bytes, entry, document))?)
    }

    /// Adds a name from the document with this number.
    pub fn add_name(&mut self, uri: &ResourceUri, document: usize) -> Result<(), SpoolError> {
        Ok(self.portion.add(self.limit, |bytes| encode_name(bytes, uri, document))?)
    }

    /// Discards all entries of the document with this number.
    pub fn take_back(&mut self, document: usize) {
        self.void.insert(document);
    }

    /// Writes a full portion to the disk.
    pub async fn make_room(&mut self) -> Result<(), SpoolError> {
        if self.portion.bytes.len() < self.limit {
            return Ok(());
        }
        Ok(self.spill().await?)
    }

    /// The entries, sorted by URI.
    pub async fn sorted(mut self, counting: Counting) -> Result<SortedEntries, SpoolError> {
        let is_few = self.runs.is_empty() && self.writing.is_none() && self.portion.bytes.len() <= FEW;
        if !is_few {
            self.spill().await?;
            self.written().await?;
        }
        let (entries, receiver) = mpsc::channel(BATCHES_AHEAD);
        spawn_blocking(move || {
            let merged = if is_few {
                let few = self.portion.sorted().and_then(|few| Merge::of(vec![few]));
                few.and_then(|few| send(few, &self.void, counting, &entries))
            } else {
                let all = self.runs.merged();
                all.and_then(|all| send(all, &self.void, counting, &entries))
            };
            if let Err(error) = merged {
                // The receiver is gone, so the error is not needed.
                let _ = entries.blocking_send(Err(error));
            }
        });
        Ok(receiver)
    }

    async fn spill(&mut self) -> io::Result<()> {
        let empty = self.written().await?;
        let full = std::mem::replace(&mut self.portion, empty);
        if !full.places.is_empty() {
            self.writing = Some(spawn_blocking(move || full.put_away()));
        }
        Ok(())
    }

    /// Waits for the previous portion. Returns its buffers.
    async fn written(&mut self) -> io::Result<Portion> {
        let Some(writing) = self.writing.take() else { return Ok(Portion::default()) };
        let (run, empty) = writing.await.map_err(io::Error::other)??;
        self.runs.add(run).await?;
        Ok(empty)
    }
}

impl Portion {
    fn add(&mut self, limit: usize, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        if self.bytes.len() > FEW && self.bytes.capacity() < limit {
            // All at once: a portion that grows by doubling takes twice the memory at its end.
            self.bytes.reserve_exact(limit + SPARE - self.bytes.len());
        }
        let begin = self.bytes.len();
        write(&mut self.bytes)?;
        self.places.push((begin, self.bytes.len()));
        Ok(())
    }

    /// Sorts by URI; entries on one resource keep their input order.
    fn sort(&mut self) {
        let bytes = &self.bytes;
        let uri = |(begin, end): &(usize, usize)| {
            let entry = &bytes[*begin..*end];
            &entry[HEAD..HEAD + number_at(entry, 0)]
        };
        self.places.sort_by(|a, b| uri(a).cmp(uri(b)));
    }

    /// Few entries, sorted in memory.
    fn sorted(mut self) -> io::Result<Cursor<Vec<u8>>> {
        self.sort();
        let mut sorted = Vec::with_capacity(self.bytes.len());
        self.places.iter().for_each(|(begin, end)| sorted.extend_from_slice(&self.bytes[*begin..*end]));
        Ok(Cursor::new(sorted))
    }

    /// Writes the sorted portion to a file. Returns its buffers.
    fn put_away(mut self) -> io::Result<(File, Self)> {
        self.sort();
        let mut file = BufWriter::with_capacity(256 * 1024, tempfile::tempfile()?);
        for (begin, end) in self.places.drain(..) {
            file.write_all(&self.bytes[begin..end])?;
        }
        self.bytes.clear();
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok((file, self))
    }
}

/// Sends sorted entries on, without those of void documents.
fn send(
    mut entries: Merge<impl Read>,
    void: &HashSet<usize>,
    counting: Counting,
    to: &mpsc::Sender<io::Result<Vec<SpooledEntry>>>,
) -> io::Result<()> {
    let mut batch: Vec<SpooledEntry> = Vec::with_capacity(BATCH);
    let mut bytes = 0;
    while let Some(entry) = entries.next()? {
        if void.contains(&entry.document()) {
            continue;
        }
        if let Some(last) = batch.last_mut().filter(|_| counting == Counting::Last)
            && last.uri() == entry.uri()
        {
            // A resource that a list names is only listed, whatever links to it.
            let is_other_kind = entry.is_linked() != last.is_linked();
            if if is_other_kind { last.is_linked() } else { !entry.is_earlier(last)? } {
                *last = entry;
            }
            continue;
        }
        if batch.len() == BATCH || bytes >= BATCH_BYTES {
            bytes = 0;
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
            if to.blocking_send(Ok(full)).is_err() {
                return Ok(());
            }
        }
        bytes += entry.size();
        batch.push(entry);
    }
    // The receiver is gone, so the rest is not needed.
    let _ = to.blocking_send(Ok(batch));
    Ok(())
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use jiff::Timestamp;
    use model::{Declaration, Listing, SetId};
    use resourcesync::Change;

    use super::*;
    use planning::Moment;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn entry(uri: &str, content: &str, second: i64, change: Option<Change>) -> ListedEntry {
        let declaration = Declaration {
            digests: vec![Sha256::of(content.as_bytes()).into()],
            length: Some(content.len() as u64),
            lastmod: Some(at(second)),
            ..Declaration::default()
        };
        let listing = Listing {
            document: "http://h/list".into(),
            set: SetId::new("http://h/caps"),
            change,
            change_time: change.map(|_| at(second)),
            as_of: Some(at(second)),
            latest: Some(at(second)),
            links: None,
            linked: None,
        };
        let moment = Moment { latest: Some(at(second)), is_vague: false };
        ListedEntry { uri: uri.parse().unwrap(), declaration, listing, moment }
    }

    async fn sorted(limit: usize, entries: &[ListedEntry], counting: Counting) -> Vec<SpooledEntry> {
        let mut spool = EntrySorter::with(limit);
        for entry in entries {
            spool.add(entry, 0).unwrap();
            spool.make_room().await.unwrap();
        }
        let mut receiver = spool.sorted(counting).await.unwrap();
        let mut all = Vec::new();
        while let Some(batch) = receiver.recv().await {
            all.extend(batch.unwrap());
        }
        all
    }

    async fn last_words(limit: usize, entries: &[ListedEntry]) -> Vec<SpooledEntry> {
        sorted(limit, entries, Counting::Last).await
    }

    fn read_back(entry: SpooledEntry) -> ListedEntry {
        entry.read(&[("http://h/list".into(), SetId::new("http://h/caps"))]).unwrap()
    }

    #[tokio::test]
    async fn words_come_in_the_order_of_uris_whatever_order_they_came_in_and_over_how_many_runs() {
        let entries: Vec<ListedEntry> =
            (0..2_000).map(|n| entry(&format!("http://h/{}", n * 7_919 % 2_000), "x", 1, None)).collect();
        for limit in [PORTION, 10_000, 1] {
            let last = last_words(limit, &entries).await;
            assert_eq!(last.len(), 2_000, "{limit}");
            assert!(last.windows(2).all(|pair| pair[0].uri() < pair[1].uri()), "{limit}");
        }
    }

    #[tokio::test]
    async fn of_several_words_the_last_counts_unless_it_speaks_of_an_earlier_moment() {
        let uri = "http://h/a";
        let entries = [
            entry(uri, "listed", 5, None),
            entry(uri, "changed", 9, Some(Change::Updated)),
            entry(uri, "older", 7, Some(Change::Updated)),
            entry("http://h/b", "listed", 5, None),
            entry("http://h/b", "", 6, Some(Change::Deleted)),
        ];
        for limit in [PORTION, 1] {
            let mut last = last_words(limit, &entries).await;
            assert_eq!(last.len(), 2);
            assert_eq!(last[0].plain(), Some((Sha256::of(b"changed"), Some(7))));
            assert_eq!(last[1].plain(), None, "a deletion is never plain");
            let b = last.pop().unwrap();
            let a = last.pop().unwrap();
            assert_eq!(read_back(b).listing.change, Some(Change::Deleted), "{limit}");
            let a = read_back(a);
            assert_eq!((&a.declaration, &a.listing, a.moment), {
                let expected = &entries[1];
                (&expected.declaration, &expected.listing, expected.moment)
            });
        }
    }

    #[tokio::test]
    async fn what_a_document_said_that_is_taken_back_counts_as_never_said() {
        for limit in [PORTION, 1] {
            let mut spool = EntrySorter::with(limit);
            spool.add(&entry("http://h/a", "listed", 5, None), 0).unwrap();
            spool.add(&entry("http://h/a", "of a copy", 9, None), 1).unwrap();
            spool.add(&entry("http://h/b", "of a copy", 9, None), 1).unwrap();
            spool.take_back(1);
            spool.add(&entry("http://h/c", "of the package", 9, None), 2).unwrap();
            let last = spool.sorted(Counting::Last).await.unwrap().recv().await.unwrap().unwrap();
            let said: Vec<_> = last
                .iter()
                .map(|entry| (std::str::from_utf8(entry.uri()).unwrap(), entry.document()))
                .collect();
            assert_eq!(said, [("http://h/a", 0), ("http://h/c", 2)], "{limit}");
        }
    }

    #[tokio::test]
    async fn only_one_sha_256_and_nothing_else_is_plain() {
        let md5 = fixity::parse_hashes("md5:900150983cd24fb0d6963f7d28e17f72").known;
        let mut two = entry("http://h/a", "x", 1, None);
        two.declaration.digests.extend(md5);
        let mut odd = entry("http://h/b", "x", 1, None);
        odd.declaration.unjudged.push("whirlpool:ab".to_owned());
        let mut none = entry("http://h/c", "x", 1, None);
        none.declaration.digests.clear();
        let last = last_words(PORTION, &[two, odd, none]).await;
        assert!(last.iter().all(|entry| entry.plain().is_none()), "{last:?}");
    }
}
