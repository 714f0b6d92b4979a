//! The rows of this scheduler's Sources, by Source.

use std::collections::{BTreeSet, HashMap};

use model::SourceId;

use super::Key;

/// The rows of this scheduler's Sources.
#[derive(Debug, Default)]
pub(super) struct Rows {
    source_of: HashMap<Key, SourceId>,
    by_source: HashMap<SourceId, BTreeSet<Key>>,
}

impl Rows {
    pub(super) fn put(&mut self, key: &Key, source: SourceId) {
        if self.source_of.get(key) != Some(&source) {
            self.remove(key);
            self.by_source.entry(source.clone()).or_default().insert(key.clone());
            self.source_of.insert(key.clone(), source);
        }
    }

    pub(super) fn remove(&mut self, key: &Key) {
        let Some(source) = self.source_of.remove(key) else { return };
        if let Some(rows) = self.by_source.get_mut(&source) {
            rows.remove(key);
            if rows.is_empty() {
                self.by_source.remove(&source);
            }
        }
    }

    /// All rows.
    pub(super) fn keys(&self) -> BTreeSet<Key> {
        self.source_of.keys().cloned().collect()
    }

    /// The rows of a Source.
    pub(super) fn of(&self, source: &SourceId) -> BTreeSet<Key> {
        self.by_source.get(source).cloned().unwrap_or_default()
    }

    /// The rows of the Source that a row belongs to.
    pub(super) fn beside(&self, key: &Key) -> BTreeSet<Key> {
        self.source_of.get(key).map(|source| self.of(source)).unwrap_or_default()
    }

    /// Whether a Source has rows here.
    pub(super) fn has(&self, source: &SourceId) -> bool {
        self.by_source.contains_key(source)
    }
}
