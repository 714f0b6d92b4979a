//! What is remembered of documents of the past between two runs.

use jiff::Timestamp;
use model::Archive;
use resourcesync::{Entry, Metadata};
use serde::{Deserialize, Serialize};

use crate::Base;
use crate::change_record::ChangeListRecord;

/// The most Resource Lists of the past. The oldest go first.
const MOST_EDITIONS: usize = 1_000;
/// The most Change Lists of the past. The oldest go first.
const MOST_LISTS: usize = 10_000;

/// Documents of the past, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Past {
    /// Resource Lists that were replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) editions: Vec<PastEdition>,
    /// Change Lists that left the index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lists: Vec<PastList>,
}

/// A Resource List that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PastEdition {
    /// Its path now.
    pub(crate) path: String,
    /// Its `at`.
    pub(crate) at: Timestamp,
    /// Its `completed`.
    pub(crate) completed: Timestamp,
    /// Since when another one is in its place.
    pub(crate) replaced: Timestamp,
    /// The paths of its parts, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<String>,
}

/// A Change List that left the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PastList {
    /// Its path.
    pub(crate) path: String,
    /// Its `from`.
    pub(crate) from: Timestamp,
    /// Its `until`.
    pub(crate) until: Timestamp,
}

impl Past {
    /// Whether it has no documents.
    pub(crate) fn is_empty(&self) -> bool {
        self.editions.is_empty() && self.lists.is_empty()
    }

    /// Takes Change Lists that leave the index.
    pub(crate) fn take_lists(&mut self, gone: &[ChangeListRecord]) {
        let gone = gone.iter().filter_map(|list| {
            Some(PastList { path: list.path.clone(), from: list.from, until: list.until? })
        });
        self.lists.extend(gone);
    }

    /// The paths of all its documents.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let editions = self.editions.iter().flat_map(PastEdition::paths);
        editions.chain(self.lists.iter().map(|list| list.path.as_str()))
    }

    /// Drops what is over. Returns the paths of those documents.
    pub(crate) fn expire(&mut self, archive: Archive, now: Timestamp) -> Vec<String> {
        let over = match archive {
            Archive::Off => Timestamp::MAX,
            Archive::For(time) => now.checked_sub(time).unwrap_or(Timestamp::MIN),
            Archive::All => Timestamp::MIN,
        };
        let editions = self.editions.iter().take_while(|edition| edition.replaced < over).count();
        let editions = editions.max(self.editions.len().saturating_sub(MOST_EDITIONS));
        let lists = self.lists.iter().take_while(|list| list.until < over).count();
        let lists = lists.max(self.lists.len().saturating_sub(MOST_LISTS));
        let mut gone = Vec::new();
        for edition in self.editions.drain(..editions) {
            gone.extend(edition.paths().map(str::to_owned));
        }
        gone.extend(self.lists.drain(..lists).map(|list| list.path));
        gone
    }
}

impl PastEdition {
    fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.parts.iter().map(String::as_str))
    }

    /// Its entry in the Archive.
    pub(crate) fn entry(&self, base: &Base) -> Entry {
        let (at, completed) = (Some(self.at.into()), Some(self.completed.into()));
        let metadata = Metadata { at, completed, ..Metadata::default() };
        Entry { metadata, ..Entry::new(base.url(&self.path)) }
    }
}

impl PastList {
    /// Its entry in the Archive.
    pub(crate) fn entry(&self, base: &Base) -> Entry {
        let (from, until) = (Some(self.from.into()), Some(self.until.into()));
        let metadata = Metadata { from, until, ..Metadata::default() };
        Entry { metadata, ..Entry::new(base.url(&self.path)) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn past() -> Past {
        let edition = |second: i64| PastEdition {
            path: format!("e{second}"),
            at: at(second),
            completed: at(second),
            replaced: at(second + 10),
            parts: vec![format!("p{second}")],
        };
        let list =
            |second: i64| PastList { path: format!("c{second}"), from: at(second), until: at(second + 10) };
        Past { editions: [0, 10, 20].map(edition).into(), lists: [0, 10, 20].map(list).into() }
    }

    #[test]
    fn documents_stay_for_their_time_after_they_were_replaced() {
        let mut all = past();
        assert!(all.expire(Archive::All, at(9_999_999)).is_empty());
        let mut some = past();
        let gone = some.expire(Archive::For(Duration::from_secs(15)), at(30));
        assert_eq!(gone, ["e0", "p0", "c0"]);
        assert_eq!(some.paths().collect::<Vec<_>>(), ["e10", "p10", "e20", "p20", "c10", "c20"]);
        assert_eq!(some.expire(Archive::Off, at(30)).len(), 6);
        assert!(some.is_empty());
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many() {
        let mut past = past();
        let last = past.lists[2].clone();
        past.lists.extend((0..MOST_LISTS).map(|_| last.clone()));
        assert_eq!(past.expire(Archive::All, at(30)), ["c0", "c10", "c20"]);
        assert_eq!(past.lists.len(), MOST_LISTS);
    }
}
