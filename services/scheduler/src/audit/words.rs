//! What documents say of resources, one word for each entry, put in the order of URIs on the disk: so it can be laid beside the catalog, which
//! has that order, in one pass and with the same memory whatever their number.

use std::collections::{BinaryHeap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use fixity::{Algorithm, Sha256};
use jiff::Timestamp;
use model::{Declaration, Listing, ResourceUri, SetId};
use resourcesync::Change;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::entry::{Moment, Planned};

/// Bytes of words that are sorted in memory. Twice as many are held while one portion is written and the next one fills.
const PORTION: usize = 24 * 1024 * 1024;
/// Room for the word that makes a portion full.
const SPARE: usize = 64 * 1024;
/// Words that travel together.
const BATCH: usize = 512;
/// Batches that may wait to be looked at.
const BATCHES_AHEAD: usize = 4;
/// Bytes of a word before its URI.
const HEAD: usize = 4 + 4 + 4 + 1 + 32 + 8;
/// Stands for a length that was not declared.
const NO_LENGTH: u64 = u64::MAX;

/// Words as they come.
pub(super) struct Words {
    portion: Portion,
    limit: usize,
    runs: Vec<File>,
    /// The portion before, which is empty again when it is written.
    writing: Option<JoinHandle<io::Result<(File, Portion)>>>,
    /// Documents whose words do not count after all.
    void: HashSet<usize>,
}

/// Words that are sorted in memory.
#[derive(Default)]
struct Portion {
    bytes: Vec<u8>,
    /// Where each word lies.
    places: Vec<(usize, usize)>,
}

/// The last word on one resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LastWord {
    pub(super) uri: String,
    /// The only digest declared, and the length, where nothing else has to be compared.
    pub(super) plain: Option<(Sha256, Option<u64>)>,
    /// The document, by its number.
    document: usize,
    body: Vec<u8>,
}

/// What an entry says, beside its URI.
#[derive(Serialize, Deserialize)]
struct Said<D> {
    #[serde(rename = "d")]
    declaration: D,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    change: Option<Change>,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    change_time: Option<Timestamp>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    as_of: Option<Timestamp>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    latest: Option<Timestamp>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    moment: Option<Timestamp>,
    #[serde(rename = "v", default, skip_serializing_if = "std::ops::Not::not")]
    is_vague: bool,
}

impl Words {
    pub(super) fn new() -> Self {
        Self::with(PORTION)
    }

    fn with(limit: usize) -> Self {
        Self { portion: Portion::default(), limit, runs: Vec::new(), writing: None, void: HashSet::new() }
    }

    /// Takes the word of an entry of the document with this number.
    pub(super) async fn add(&mut self, word: &Planned, document: usize) -> io::Result<()> {
        let Portion { bytes, places } = &mut self.portion;
        if bytes.capacity() == 0 {
            // At once: a portion that doubles in size takes twice the memory at its end.
            bytes.reserve_exact(self.limit + SPARE);
        }
        let begin = bytes.len();
        encode(bytes, word, document)?;
        places.push((begin, bytes.len()));
        if bytes.len() >= self.limit {
            self.spill().await?;
        }
        Ok(())
    }

    /// Takes back all that the document with this number has said.
    pub(super) fn take_back(&mut self, document: usize) {
        self.void.insert(document);
    }

    /// The last word on each resource, in the order of URIs. Of two words the later one counts, unless it certainly speaks of an earlier
    /// moment.
    pub(super) async fn last_words(mut self) -> io::Result<mpsc::Receiver<io::Result<Vec<LastWord>>>> {
        self.spill().await?;
        self.written().await?;
        let (last_words, receiver) = mpsc::channel(BATCHES_AHEAD);
        spawn_blocking(move || {
            if let Err(error) = merge(self.runs, &self.void, &last_words) {
                // Whoever listens no more has no use for it.
                let _ = last_words.blocking_send(Err(error));
            }
        });
        Ok(receiver)
    }

    async fn spill(&mut self) -> io::Result<()> {
        let empty = self.written().await?;
        let full = std::mem::replace(&mut self.portion, empty);
        if !full.places.is_empty() {
            self.writing = Some(spawn_blocking(move || write(full)));
        }
        Ok(())
    }

    /// Waits for the portion before. Gives its room.
    async fn written(&mut self) -> io::Result<Portion> {
        let Some(writing) = self.writing.take() else { return Ok(Portion::default()) };
        let (run, empty) = writing.await.map_err(io::Error::other)??;
        self.runs.push(run);
        Ok(empty)
    }
}

impl LastWord {
    /// The word as it was planned; `documents` are those of the numbers.
    pub(super) fn read(self, documents: &[(String, SetId)]) -> io::Result<Planned> {
        let said: Said<Declaration> = serde_json::from_slice(&self.body)?;
        let (document, set) = documents.get(self.document).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Planned {
            uri: ResourceUri::try_from(self.uri).map_err(io::Error::other)?,
            declaration: said.declaration,
            listing: Listing {
                document: document.clone(),
                set: set.clone(),
                change: said.change,
                change_time: said.change_time,
                as_of: said.as_of,
                latest: said.latest,
            },
            moment: Moment { latest: said.moment, is_vague: said.is_vague },
        })
    }
}

fn encode(to: &mut Vec<u8>, word: &Planned, document: usize) -> io::Result<()> {
    let Planned { uri, declaration, listing, moment } = word;
    let begin = to.len();
    to.resize(begin + HEAD, 0);
    to.extend_from_slice(uri.as_str().as_bytes());
    let uri_end = to.len();
    let said = Said {
        declaration,
        change: listing.change,
        change_time: listing.change_time,
        as_of: listing.as_of,
        latest: listing.latest,
        moment: moment.latest,
        is_vague: moment.is_vague,
    };
    serde_json::to_writer(&mut *to, &said)?;
    let numbers = [uri_end - begin - HEAD, to.len() - uri_end, document];
    let head = &mut to[begin..begin + HEAD];
    for (n, number) in numbers.into_iter().enumerate() {
        let number = u32::try_from(number).map_err(io::Error::other)?;
        head[n * 4..n * 4 + 4].copy_from_slice(&number.to_le_bytes());
    }
    if let [digest] = declaration.digests.as_slice()
        && digest.algorithm() == Algorithm::Sha256
        && declaration.unjudged.is_empty()
        && listing.change != Some(Change::Deleted)
    {
        head[12] = 1;
        head[13..45].copy_from_slice(digest.bytes());
        head[45..53].copy_from_slice(&declaration.length.unwrap_or(NO_LENGTH).to_le_bytes());
    }
    Ok(())
}

/// Writes a portion in the order of URIs; words on one resource stay in the order in which they came. Gives its room back.
fn write(Portion { mut bytes, mut places }: Portion) -> io::Result<(File, Portion)> {
    let uri = |(begin, end): &(usize, usize)| {
        let word = &bytes[*begin..*end];
        &word[HEAD..HEAD + number_at(word, 0)]
    };
    places.sort_by(|a, b| uri(a).cmp(uri(b)));
    let mut file = BufWriter::with_capacity(256 * 1024, tempfile::tempfile()?);
    for (begin, end) in places.drain(..) {
        file.write_all(&bytes[begin..end])?;
    }
    bytes.clear();
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok((file, Portion { bytes, places }))
}

fn number_at(head: &[u8], at: usize) -> usize {
    let bytes: [u8; 4] = head[at..at + 4].try_into().unwrap_or_default();
    // It was a usize when it was written.
    u32::from_le_bytes(bytes) as usize
}

/// The next word of a run.
struct Next {
    word: LastWord,
    run: usize,
}

/// Lays sorted runs together, without what void documents have said.
fn merge(
    runs: Vec<File>,
    void: &HashSet<usize>,
    to: &mpsc::Sender<io::Result<Vec<LastWord>>>,
) -> io::Result<()> {
    let mut runs: Vec<BufReader<File>> =
        runs.into_iter().map(|run| BufReader::with_capacity(128 * 1024, run)).collect();
    let mut heap = BinaryHeap::new();
    for (run, file) in runs.iter_mut().enumerate() {
        heap.extend(read(file)?.map(|word| Next { word, run }));
    }
    let mut batch: Vec<LastWord> = Vec::with_capacity(BATCH);
    while let Some(Next { word, run }) = heap.pop() {
        heap.extend(read(&mut runs[run])?.map(|word| Next { word, run }));
        match batch.last_mut() {
            _ if void.contains(&word.document) => {}
            Some(last) if last.uri == word.uri => {
                if !is_earlier(&word, last)? {
                    *last = word;
                }
            }
            _ => {
                if batch.len() == BATCH {
                    let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                    if to.blocking_send(Ok(full)).is_err() {
                        return Ok(());
                    }
                }
                batch.push(word);
            }
        }
    }
    // Whoever listens no more has no use for it.
    let _ = to.blocking_send(Ok(batch));
    Ok(())
}

/// Whether a word certainly speaks of an earlier moment than the one before it.
fn is_earlier(word: &LastWord, last: &LastWord) -> io::Result<bool> {
    let word: Said<Declaration> = serde_json::from_slice(&word.body)?;
    let last: Said<Declaration> = serde_json::from_slice(&last.body)?;
    Ok(word.moment.zip(last.as_of).is_some_and(|(word, last)| word < last))
}

fn read(run: &mut impl Read) -> io::Result<Option<LastWord>> {
    let mut head = [0; HEAD];
    match run.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut uri = vec![0; number_at(&head, 0)];
    run.read_exact(&mut uri)?;
    let mut body = vec![0; number_at(&head, 4)];
    run.read_exact(&mut body)?;
    let plain = (head[12] == 1).then(|| {
        let sha256: [u8; 32] = head[13..45].try_into().unwrap_or_default();
        let length = u64::from_le_bytes(head[45..53].try_into().unwrap_or_default());
        (Sha256::from_bytes(sha256), Some(length).filter(|length| *length != NO_LENGTH))
    });
    let uri = String::from_utf8(uri).map_err(io::Error::other)?;
    Ok(Some(LastWord { uri, plain, document: number_at(&head, 8), body }))
}

impl Ord for Next {
    /// The greatest is the one that comes first: by its URI, then by its run, since earlier runs were filled earlier.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.word.uri.as_bytes(), other.run).cmp(&(self.word.uri.as_bytes(), self.run))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn word(uri: &str, content: &str, second: i64, change: Option<Change>) -> Planned {
        let declaration = Declaration {
            digests: vec![Sha256::of(content.as_bytes()).into()],
            length: Some(content.len() as u64),
            lastmod: Some(at(second)),
            ..Declaration::default()
        };
        let listing = Listing {
            document: "http://h/list".to_owned(),
            set: SetId::new("http://h/caps"),
            change,
            change_time: change.map(|_| at(second)),
            as_of: Some(at(second)),
            latest: Some(at(second)),
        };
        let moment = Moment { latest: Some(at(second)), is_vague: false };
        Planned { uri: uri.parse().unwrap(), declaration, listing, moment }
    }

    async fn last_words(limit: usize, words: &[Planned]) -> Vec<LastWord> {
        let mut spool = Words::with(limit);
        for word in words {
            spool.add(word, 0).await.unwrap();
        }
        let mut receiver = spool.last_words().await.unwrap();
        let mut all = Vec::new();
        while let Some(batch) = receiver.recv().await {
            all.extend(batch.unwrap());
        }
        all
    }

    fn read_back(word: LastWord) -> Planned {
        word.read(&[("http://h/list".to_owned(), SetId::new("http://h/caps"))]).unwrap()
    }

    #[tokio::test]
    async fn words_come_in_the_order_of_uris_whatever_order_they_came_in_and_over_how_many_runs() {
        let words: Vec<Planned> =
            (0..2_000).map(|n| word(&format!("http://h/{}", n * 7_919 % 2_000), "x", 1, None)).collect();
        for limit in [PORTION, 10_000, 1] {
            let last = last_words(limit, &words).await;
            assert_eq!(last.len(), 2_000, "{limit}");
            assert!(last.windows(2).all(|pair| pair[0].uri.as_bytes() < pair[1].uri.as_bytes()), "{limit}");
        }
    }

    #[tokio::test]
    async fn of_several_words_the_last_counts_unless_it_speaks_of_an_earlier_moment() {
        let uri = "http://h/a";
        let words = [
            word(uri, "listed", 5, None),
            word(uri, "changed", 9, Some(Change::Updated)),
            word(uri, "older", 7, Some(Change::Updated)),
            word("http://h/b", "listed", 5, None),
            word("http://h/b", "", 6, Some(Change::Deleted)),
        ];
        for limit in [PORTION, 1] {
            let mut last = last_words(limit, &words).await;
            assert_eq!(last.len(), 2);
            assert_eq!(last[0].plain, Some((Sha256::of(b"changed"), Some(7))));
            assert_eq!(last[1].plain, None, "a deletion is never plain");
            let (b, a) = (last.pop().unwrap(), last.pop().unwrap());
            assert_eq!(read_back(b).listing.change, Some(Change::Deleted), "{limit}");
            let a = read_back(a);
            assert_eq!((&a.declaration, &a.listing, a.moment), {
                let expected = &words[1];
                (&expected.declaration, &expected.listing, expected.moment)
            });
        }
    }

    #[tokio::test]
    async fn what_a_document_said_that_is_taken_back_counts_as_never_said() {
        for limit in [PORTION, 1] {
            let mut spool = Words::with(limit);
            spool.add(&word("http://h/a", "listed", 5, None), 0).await.unwrap();
            spool.add(&word("http://h/a", "of a copy", 9, None), 1).await.unwrap();
            spool.add(&word("http://h/b", "of a copy", 9, None), 1).await.unwrap();
            spool.take_back(1);
            spool.add(&word("http://h/c", "of the package", 9, None), 2).await.unwrap();
            let last = spool.last_words().await.unwrap().recv().await.unwrap().unwrap();
            let said: Vec<_> = last.iter().map(|word| (&*word.uri, word.document)).collect();
            assert_eq!(said, [("http://h/a", 0), ("http://h/c", 2)], "{limit}");
        }
    }

    #[tokio::test]
    async fn only_one_sha_256_and_nothing_else_is_plain() {
        let md5 = fixity::parse_hashes("md5:900150983cd24fb0d6963f7d28e17f72").known;
        let mut two = word("http://h/a", "x", 1, None);
        two.declaration.digests.extend(md5);
        let mut odd = word("http://h/b", "x", 1, None);
        odd.declaration.unjudged.push("whirlpool:ab".to_owned());
        let mut none = word("http://h/c", "x", 1, None);
        none.declaration.digests.clear();
        let last = last_words(PORTION, &[two, odd, none]).await;
        assert!(last.iter().all(|word| word.plain.is_none()), "{last:?}");
    }
}
