//! The change log: the events of resources, in order. Append-only; each entry has an ascending number.
//!
//! Entries that are committed together are stored in pages. A row of the database per entry would cost
//! several times the entry's size.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future, stream};
use model::{ChangeLogEntry, ResourceUri};

use crate::change_page::Page;
use crate::keyspace::{Key, KeySpace};
use crate::scan::{ChangeScan, Scan};
use crate::{Batch, CatalogError, Lookups};

/// A page with this many bytes takes no further entry: the size of a block of the database.
const FULL: usize = 8 * 1024;

/// `c<number>`, 8 bytes, big endian: the number of a page's last entry, so that a scan from any entry begins
/// at its page.
pub(crate) enum Changes {}

/// Uncommitted entries, as they will be stored.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    open: Vec<OpenPage>,
    entries: usize,
}

/// The beginning of a JSON array.
#[derive(Debug)]
struct OpenPage {
    entries: u64,
    json: Vec<u8>,
}

impl KeySpace for Changes {
    const PREFIX: u8 = b'c';
    const NAME: &'static str = "change log entry";
    type Name = u64;
    type Record = Page;

    fn read_name(name: &[u8]) -> Result<u64, String> {
        let bytes = name.try_into().map_err(|_| format!("its key has {} bytes instead of 8", name.len()))?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn show_name(name: &[u8]) -> String {
        Self::read_name(name).map_or_else(|_| format!("{name:02x?}"), |number| number.to_string())
    }
}

impl Changes {
    pub(crate) fn key(number: u64) -> Key<Self> {
        Key::of(number.to_be_bytes())
    }
}

impl Lookups {
    /// The change log from the entry with this number on (0: from the beginning), each entry with its number.
    ///
    /// Numbers rise in the order of commits. One may be missing; none occurs twice.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where an entry cannot be read.
    pub async fn scan_changes(&self, from: u64) -> Result<ChangeScan, CatalogError> {
        let pages = self.scan::<Changes>(b"", from.checked_sub(1).map(Changes::key)).await?;
        let lookups = self.clone();
        let entries = pages.and_then(move |(last, page)| {
            let page = page.numbered(last).ok_or_else(|| {
                let why = "it has more entries than there are numbers up to its own";
                lookups.corrupt::<Changes>(&last.to_be_bytes(), why)
            });
            future::ready(page.map(|entries| stream::iter(entries.map(Ok))))
        });
        Ok(Scan::new(
            entries.try_flatten().try_filter(move |(number, _)| future::ready(*number >= from)).boxed(),
        ))
    }

    /// The events of one resource, oldest first.
    ///
    /// There is no index for it: it reads the whole change log, a few seconds for a million entries.
    ///
    /// # Errors
    /// As [`scan_changes`](Self::scan_changes).
    pub async fn changes_of(&self, uri: &ResourceUri) -> Result<ChangeScan, CatalogError> {
        let uri = uri.clone();
        let all = self.scan_changes(0).await?;
        Ok(Scan::new(all.try_filter(move |(_, entry)| future::ready(entry.uri == uri)).boxed()))
    }
}

impl Pages {
    pub(crate) fn append(&mut self, entry: &ChangeLogEntry) {
        let page = match self.open.last_mut() {
            Some(page) if page.json.len() < FULL => page,
            _ => self.open.push_mut(OpenPage { entries: 0, json: Vec::new() }),
        };
        page.json.push(if page.entries == 0 { b'[' } else { b',' });
        // An entry is a struct of strings, numbers and lists: no maps with other keys than text, and no
        // failing `Serialize`.
        serde_json::to_writer(&mut page.json, entry).expect("entries serialise to JSON");
        page.entries += 1;
        self.entries += 1;
    }

    /// The pages as stored, with their entries numbered from `*next` on.
    pub(crate) fn numbered(self, next: &mut u64) -> impl Iterator<Item = (Key<Changes>, Bytes)> {
        self.open.into_iter().map(|OpenPage { entries, mut json }| {
            json.push(b']');
            *next += entries;
            (Changes::key(*next - 1), json.into())
        })
    }

    /// How many rows of the database they need.
    pub(crate) fn rows(&self) -> usize {
        self.open.len()
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }
}

impl Batch {
    /// Appends to the change log; the number is given at the commit.
    pub fn append_change(&mut self, entry: &ChangeLogEntry) {
        self.changes.append(entry);
    }
}

#[cfg(test)]
mod tests {
    use model::{ChangeEvent, RunId};

    use super::*;

    fn created() -> ChangeEvent {
        ChangeEvent::Created { sha256: fixity::Computed::of(b"x").sha256() }
    }

    fn entry(n: usize) -> ChangeLogEntry {
        let uri = format!("http://h/{n}").parse().unwrap();
        let document = "http://h/list.xml".into();
        ChangeLogEntry::new(uri, created(), jiff::Timestamp::UNIX_EPOCH, RunId::fresh(), document)
    }

    #[test]
    fn entries_fill_pages_and_each_keeps_its_number() {
        let entries: Vec<_> = (0..1_000).map(entry).collect();
        let mut pages = Pages::default();
        entries.iter().for_each(|entry| pages.append(entry));
        let rows = pages.rows();
        assert!((5..50).contains(&rows), "{rows}");
        let mut next = 7;
        let mut read = Vec::new();
        for (key, json) in pages.numbered(&mut next) {
            assert!(json.len() < 2 * FULL);
            let last = Changes::read_name(&key.bytes()[1..]).unwrap();
            let page: Page = serde_json::from_slice(&json).unwrap();
            read.extend(page.numbered(last).unwrap());
        }
        assert_eq!(next, 1_007);
        assert!(read.into_iter().eq((7..).zip(entries)));
    }
}
