//! A batch: changes of records that take effect together or not at all.

use bytes::Bytes;
use serde::Serialize;
use slatedb::WriteBatch;

use crate::changes::Pages;
use crate::keyspace::{self, Key, KeySpace, LONGEST_KEY};
use crate::meta::NEXT_CHANGE;

/// Changes of records, collected to be applied by [`Catalog::commit`](crate::Catalog::commit).
///
/// A later change of the same record replaces an earlier one.
#[derive(Debug, Default)]
pub struct Batch {
    writes: WriteBatch,
    /// Entries of the change log.
    pub(crate) changes: Pages,
    /// All other changes.
    records: usize,
    /// Pending records that are removed.
    pub(crate) pending_done: u64,
    /// How many times it writes a pending record.
    pub(crate) pending_put: u64,
    /// Whether what is known of a resource is written.
    pub(crate) puts_resources: bool,
    too_long: Option<TooLong>,
    /// Where records are written before their size is known.
    scratch: Vec<u8>,
}

/// A key that no record can have.
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

    /// How many changes were collected.
    pub fn len(&self) -> usize {
        self.records + self.changes.entries()
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many pending records it removes.
    pub fn pending_done(&self) -> u64 {
        self.pending_done
    }

    /// Whether it writes what is known of any resource.
    pub fn puts_resources(&self) -> bool {
        self.puts_resources
    }

    pub(crate) fn put<S: KeySpace>(&mut self, key: Key<S>, record: &S::Record) {
        self.put_value(key, record);
    }

    pub(crate) fn put_value<S: KeySpace>(&mut self, key: Key<S>, value: &impl Serialize) {
        if self.accepts(&key) {
            let value = self.json(value);
            self.writes.put_bytes(key.bytes().clone(), value);
            self.records += 1;
        }
    }

    pub(crate) fn delete<S: KeySpace>(&mut self, key: Key<S>) {
        if self.accepts(&key) {
            self.writes.delete(key.bytes());
            self.records += 1;
        }
    }

    /// How many rows of the database it changes.
    pub(crate) fn rows(&self) -> usize {
        self.records + self.changes.rows()
    }

    /// A key in it that no record can have, if there is one.
    pub(crate) fn too_long(&self) -> Option<&TooLong> {
        self.too_long.as_ref()
    }

    /// The changes as the LSM takes them; change log entries are numbered from `*next_change` on.
    pub(crate) fn into_writes(mut self, next_change: &mut u64) -> WriteBatch {
        let mut writes = self.writes;
        if self.changes.entries() > 0 {
            for (key, page) in self.changes.numbered(next_change) {
                writes.put_bytes(key.bytes().clone(), page);
            }
            let number = json(&mut self.scratch, next_change);
            writes.put_bytes(Key::<crate::meta::Meta>::of(NEXT_CHANGE).bytes().clone(), number);
        }
        writes
    }

    fn json(&mut self, record: &(impl Serialize + ?Sized)) -> Bytes {
        json(&mut self.scratch, record)
    }

    fn accepts<S: KeySpace>(&mut self, key: &Key<S>) -> bool {
        let length = key.bytes().len();
        if length <= LONGEST_KEY {
            return true;
        }
        // The whole batch is refused: what goes together is not committed in part.
        self.too_long = Some(TooLong { key: keyspace::show::<S>(&key.bytes()[..80]), length });
        self.records += 1;
        false
    }
}

/// The record as it is stored: JSON, so that a person can read and mend it. It is written to `scratch` first, which has the room that others
/// before it took, and takes no more of its own than it has bytes.
fn json(scratch: &mut Vec<u8>, record: &(impl Serialize + ?Sized)) -> Bytes {
    scratch.clear();
    // Records are structs of strings, numbers and lists: no map with keys that are not text, no failing Serialize.
    serde_json::to_writer(&mut *scratch, record).expect("records serialise to JSON");
    Bytes::copy_from_slice(scratch)
}
