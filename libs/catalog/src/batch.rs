//! A batch: changes of records that take effect together or not at all.

use std::ops::Range;

use bytes::Bytes;
use serde::Serialize;
use slatedb::WriteBatch;

use crate::change_page::Pages;
use crate::keyspace::{self, Key, KeySpace, LONGEST_KEY, write_json};

/// The usual size of a row, key and record together: some hundred bytes for a pending record or a resource, and the
/// key alone for a removal.
const USUAL_ROW: usize = 448;

/// Changes of records, collected to be applied by [`Catalog::commit`](crate::Catalog::commit).
///
/// A later change of the same record replaces an earlier one.
#[derive(Debug, Default)]
pub struct Batch {
    /// Keys and records as stored, one behind the other. An allocation for each would cost more than writing
    /// it, here and wherever the database clones it.
    bytes: Vec<u8>,
    /// The changes, in order.
    writes: Vec<Write>,
    /// Entries of the change log.
    pub(crate) changes: Pages,
    /// All other changes.
    records: usize,
    /// Plans that are completed.
    pub(crate) pending_done: u64,
    too_long: Option<TooLong>,
}

/// A row to put, or to remove if it has no value: ranges of the batch's bytes.
#[derive(Debug)]
struct Write {
    key: Range<usize>,
    value: Option<Range<usize>>,
}

/// A key that is longer than allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooLong {
    /// The record's kind and the beginning of its name.
    pub(crate) key: String,
    /// Its length in bytes.
    pub(crate) length: usize,
}

impl Batch {
    /// A batch without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves capacity for this many more changes of the usual size, so that collected ones are not moved
    /// repeatedly. It is only a hint.
    pub fn reserve(&mut self, changes: usize) {
        self.bytes.reserve(changes * USUAL_ROW);
        self.writes.reserve(changes);
    }

    /// The number of collected changes.
    pub fn len(&self) -> usize {
        self.records + self.changes.entries()
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many plans it completes: pending records that it removes, and plans that were never written.
    pub fn pending_done(&self) -> u64 {
        self.pending_done
    }

    /// The keys of the records that it writes.
    pub(crate) fn written(&self) -> impl Iterator<Item = &[u8]> {
        let written = self.writes.iter().filter(|write| write.value.is_some());
        written.map(|write| &self.bytes[write.key.clone()])
    }

    pub(crate) fn put<S: KeySpace>(&mut self, key: Key<S>, record: &S::Record) {
        self.put_with(key, |to| S::write(to, record));
    }

    /// Writes a value of another type than the records of the space, as JSON.
    pub(crate) fn put_value<S: KeySpace>(&mut self, key: Key<S>, value: &impl Serialize) {
        self.put_with(key, |to| write_json(to, value));
    }

    fn put_with<S: KeySpace>(&mut self, key: Key<S>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.accepts(&key) {
            let key = self.append(key.bytes());
            let start = self.bytes.len();
            write(&mut self.bytes);
            self.writes.push(Write { key, value: Some(start..self.bytes.len()) });
            self.records += 1;
        }
    }

    pub(crate) fn delete<S: KeySpace>(&mut self, key: Key<S>) {
        if self.accepts(&key) {
            let key = self.append(key.bytes());
            self.writes.push(Write { key, value: None });
            self.records += 1;
        }
    }

    /// The number of changed rows of the database.
    pub(crate) fn rows(&self) -> usize {
        self.records + self.changes.rows()
    }

    /// A key in it that is too long, if there is one.
    pub(crate) fn too_long(&self) -> Option<&TooLong> {
        self.too_long.as_ref()
    }

    /// The changes for the LSM; entries of the change log are numbered from `next_change` on.
    pub(crate) fn into_writes(self, next_change: u64) -> WriteBatch {
        let mut writes = WriteBatch::new();
        // No spare capacity: the database keeps it until it is written out.
        let bytes = Bytes::from(self.bytes.into_boxed_slice());
        for Write { key, value } in self.writes {
            match value {
                Some(value) => writes.put_bytes(bytes.slice(key), bytes.slice(value)),
                None => writes.delete(&bytes[key]),
            }
        }
        for (key, page) in self.changes.numbered(next_change) {
            writes.put_bytes(key.bytes().clone(), page);
        }
        writes
    }

    fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn accepts<S: KeySpace>(&mut self, key: &Key<S>) -> bool {
        let length = key.bytes().len();
        if length <= LONGEST_KEY {
            return true;
        }
        // The whole batch is refused: it is never committed in part.
        self.too_long = Some(TooLong { key: keyspace::show::<S>(&key.bytes()[..80]), length });
        self.records += 1;
        false
    }
}
