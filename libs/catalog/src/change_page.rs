//! A decoded page of the change log.

use std::fmt;

use model::ChangeLogEntry;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

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

/// An array; or, in schema 1, which had no pages, a single entry.
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
    fn a_page_is_read_as_it_was_written() {
        let page = Page(vec![entry("a"), entry("b")]);
        assert_eq!(serde_json::from_str::<Page>(&serde_json::to_string(&page).unwrap()).unwrap(), page);
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
