//! Sorted runs of entries on the disk, and the merge of them.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek};

use tokio::task::spawn_blocking;

use crate::spooled_entry::{HEAD, SpooledEntry, number_at};

/// The most runs of one generation. A process may have only 1,024 files open, and each needs a buffer.
const MOST: usize = 256;
/// Bytes that are read ahead of each run.
const AHEAD: usize = 64 * 1024;

/// Sorted runs, in the order in which they were filled.
#[derive(Debug)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    most: usize,
}

#[derive(Debug)]
struct Run {
    file: File,
    /// How often its entries were merged.
    generation: u32,
}

impl Default for Runs {
    fn default() -> Self {
        Self { runs: Vec::new(), most: MOST }
    }
}

impl Runs {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run. Many of one generation are merged into one of the next, so files and memory stay few, whatever the
    /// number of entries.
    pub(crate) async fn add(&mut self, file: File) -> io::Result<()> {
        self.runs.push(Run { file, generation: 0 });
        while let Some(full) = self.take_full() {
            let generation = full.first().map_or(0, |run| run.generation) + 1;
            let merged = spawn_blocking(move || put_together(full)).await.map_err(io::Error::other)?;
            self.runs.push(Run { file: merged?, generation });
        }
        Ok(())
    }

    /// The last runs, if there are as many of their generation as there may be.
    fn take_full(&mut self) -> Option<Vec<Run>> {
        let last = self.runs.last()?.generation;
        let first = self.runs.iter().rposition(|run| run.generation != last).map_or(0, |before| before + 1);
        (self.runs.len() - first >= self.most).then(|| self.runs.split_off(first))
    }

    /// All entries in order.
    pub(crate) fn merged(self) -> io::Result<Merge<BufReader<File>>> {
        merged(self.runs)
    }
}

fn merged(runs: Vec<Run>) -> io::Result<Merge<BufReader<File>>> {
    Merge::of(runs.into_iter().map(|run| BufReader::with_capacity(AHEAD, run.file)).collect())
}

fn put_together(runs: Vec<Run>) -> io::Result<File> {
    let mut file = BufWriter::with_capacity(256 * 1024, tempfile::tempfile()?);
    let mut entries = merged(runs)?;
    while let Some(entry) = entries.next()? {
        entry.write(&mut file)?;
    }
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

/// The entries of several runs in order: by URI, and entries on one resource in the order of the runs.
pub(crate) struct Merge<R> {
    runs: Vec<R>,
    heap: BinaryHeap<HeapItem>,
}

impl<R: Read> Merge<R> {
    pub(crate) fn of(mut runs: Vec<R>) -> io::Result<Self> {
        let mut heap = BinaryHeap::with_capacity(runs.len());
        for (run, file) in runs.iter_mut().enumerate() {
            heap.extend(read(file)?.map(|entry| HeapItem { entry, run }));
        }
        Ok(Self { runs, heap })
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<SpooledEntry>> {
        let Some(mut first) = self.heap.peek_mut() else { return Ok(None) };
        // Replaced in place, the next entry of the same run usually stays on top: many lists are sorted.
        Ok(Some(match read(&mut self.runs[first.run])? {
            Some(next) => std::mem::replace(&mut first.entry, next),
            None => PeekMut::pop(first).entry,
        }))
    }
}

/// The next entry of a sorted run.
struct HeapItem {
    entry: SpooledEntry,
    run: usize,
}

fn read(run: &mut impl Read) -> io::Result<Option<SpooledEntry>> {
    let mut head = [0; HEAD];
    match run.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = vec![0; number_at(&head, 0) + number_at(&head, 4)];
    run.read_exact(&mut bytes)?;
    Ok(Some(SpooledEntry::new(head, bytes)))
}

impl Ord for HeapItem {
    /// The heap's greatest item is the first in order: by URI, then by run, because earlier runs were filled earlier.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.entry.uri(), other.run).cmp(&(self.entry.uri(), self.run))
    }
}

impl PartialOrd for HeapItem {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeapItem {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for HeapItem {}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use fixity::Sha256;
    use jiff::Timestamp;
    use model::{Declaration, Listing, SetId};
    use planning::{ListedEntry, Moment};

    use super::*;
    use crate::spooled_entry::encode;

    /// An entry on a resource, from the document with this number.
    fn entry(resource: usize, document: usize) -> Vec<u8> {
        let listing = Listing {
            document: "http://h/list".into(),
            set: SetId::new("http://h/caps"),
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
            links: None,
            linked: None,
        };
        let declaration = Declaration { digests: vec![Sha256::of(b"x").into()], ..Declaration::default() };
        let moment = Moment { latest: None::<Timestamp>, is_vague: false };
        let uri = format!("http://h/{resource:04}").parse().unwrap();
        let mut bytes = Vec::new();
        encode(&mut bytes, &ListedEntry { uri, declaration, listing, moment }, document).unwrap();
        bytes
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    #[tokio::test]
    async fn runs_of_many_generations_keep_their_order_and_few_files() {
        let mut runs = Runs { most: 3, ..Runs::default() };
        for n in 0..100 {
            // Each run has one resource of all runs, and one of its own.
            runs.add(file(&[entry(0, n), entry(100 - n, n)].concat())).await.unwrap();
            assert!(runs.runs.len() <= 2 * 5, "{} files after {n}", runs.runs.len());
        }
        let mut merged = runs.merged().unwrap();
        let mut found = Vec::new();
        while let Some(entry) = merged.next().unwrap() {
            found.push((String::from_utf8(entry.uri().to_vec()).unwrap(), entry.document()));
        }
        let shared = (0..100).map(|n| ("http://h/0000".to_owned(), n));
        let own = (1..=100).map(|n| (format!("http://h/{n:04}"), 100 - n));
        assert_eq!(found, shared.chain(own).collect::<Vec<_>>());
    }
}
