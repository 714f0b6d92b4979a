//! Pages of the change log: entries that are stored together.

use std::fmt;

use bytes::Bytes;
use model::{ChangeLogEntry, Persisted};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::keyspace::{Key, KeySpace};
use crate::stored::{self, PageWriter};

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

/// A page that takes further entries.
#[derive(Debug)]
struct OpenPage {
    entries: u64,
    page: PageWriter,
}

impl KeySpace for Changes {
    const PREFIX: u8 = Persisted::Changes.letter();
    const NAME: &'static str = "change log entry";
    type Name = u64;
    type Record = Page;

    fn write(to: &mut Vec<u8>, Page(entries): &Page) {
        let mut page = PageWriter::new();
        entries.iter().for_each(|entry| page.append(entry));
        to.extend(page.into_bytes());
    }

    fn read(value: &[u8]) -> Result<Page, String> {
        stored::read_either(value, |form| stored::read_page(form).map(Page))
    }

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

/// Entries that are stored together, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Page(Vec<ChangeLogEntry>);

impl Page {
    /// The entries with their numbers; `last` is the number of the last one. None if there are too many for
    /// that.
    pub(crate) fn numbered(self, last: u64) -> Option<impl Iterator<Item = (u64, ChangeLogEntry)>> {
        let first = (last + 1).checked_sub(self.0.len() as u64)?;
        Some((first..).zip(self.0))
    }
}

impl Pages {
    pub(crate) fn append(&mut self, entry: &ChangeLogEntry) {
        let open = match self.open.last_mut() {
            Some(open) if open.page.len() < FULL => open,
            _ => self.open.push_mut(OpenPage { entries: 0, page: PageWriter::new() }),
        };
        open.page.append(entry);
        open.entries += 1;
        self.entries += 1;
    }

    /// The pages as stored, with their entries numbered from `next` on.
    pub(crate) fn numbered(self, mut next: u64) -> impl Iterator<Item = (Key<Changes>, Bytes)> {
        self.open.into_iter().map(move |OpenPage { entries, page }| {
            next += entries;
            (Changes::key(next - 1), page.into_bytes().into())
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

/// Pages of schema 2 are arrays. Schema 1 had no pages, but single entries.
impl<'de> Deserialize<'de> for Page {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Page;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("entries of the change log")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Page, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = seq.next_element()? {
                    entries.push(entry);
                }
                Ok(Page(entries))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Page, A::Error> {
                ChangeLogEntry::deserialize(MapAccessDeserializer::new(map)).map(|entry| Page(vec![entry]))
            }
        }

        deserializer.deserialize_any(Entries)
    }
}

#[cfg(test)]
mod tests {
    use model::{ChangeEvent, RunId};

    use super::*;

    fn created() -> ChangeEvent {
        ChangeEvent::Created { sha256: fixity::Computed::of(b"x").sha256() }
    }

    fn entry(name: &str) -> ChangeLogEntry {
        let uri = format!("http://h/{name}").parse().unwrap();
        let at = jiff::Timestamp::UNIX_EPOCH;
        ChangeLogEntry::new(uri, created(), at, RunId::fresh(), "http://h/list.xml".into())
    }

    #[test]
    fn entries_fill_pages_and_each_keeps_its_number() {
        let entries: Vec<_> = (0..5_000).map(|n| entry(&n.to_string())).collect();
        let mut pages = Pages::default();
        entries.iter().for_each(|entry| pages.append(entry));
        let rows = pages.rows();
        assert!((5..50).contains(&rows), "{rows}");
        assert_eq!(pages.entries(), 5_000);
        let mut read = Vec::new();
        for (key, value) in pages.numbered(7) {
            assert!(value.len() < 2 * FULL);
            let last = Changes::read_name(&key.bytes()[1..]).unwrap();
            let page = Changes::read(&value).unwrap();
            read.extend(page.numbered(last).unwrap());
        }
        assert!(read.into_iter().eq((7..).zip(entries)));
    }

    #[test]
    fn a_page_of_json_is_read_as_it_was_written() {
        let page = Page(vec![entry("a"), entry("b")]);
        assert_eq!(Changes::read(&serde_json::to_vec(&page).unwrap()), Ok(page));
        assert!(
            serde_json::from_str::<Page>("7").unwrap_err().to_string().contains("entries of the change log")
        );
    }

    #[test]
    fn an_entry_by_itself_is_a_page_of_one() {
        let alone = entry("a");
        let page: Page = serde_json::from_str(&serde_json::to_string(&alone).unwrap()).unwrap();
        assert_eq!(page.numbered(12).unwrap().collect::<Vec<_>>(), [(12, alone)]);
    }

    #[test]
    fn more_entries_than_numbers_are_no_page() {
        assert!(Page(vec![entry("a"), entry("b")]).numbered(0).is_none());
        assert!(Page(vec![entry("a"), entry("b")]).numbered(1).is_some());
    }
}
