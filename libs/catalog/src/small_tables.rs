//! Small tables, read as a whole.
//!
//! The database reads a table in pieces: a filter, an index, and blocks. Each is a request, and merging looks into no
//! cache of blocks. A small table is read with one request instead, and one that this process wrote with none. A table
//! never changes, and its name is never used again.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use lru::LruCache;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, PutPayload, PutResult, Result,
};
use slatedb::object_store_tag::ObjectStoreCallTag;

use crate::known_object::{self, written};

/// The most bytes of a small table: it takes hardly longer to read than a piece of it.
const SMALL: u64 = 256 * 1024;
/// What is counted for a table beside its bytes.
const ENTRY: usize = 512;

/// The small tables that a process wrote or read last, of all its catalogs.
pub(crate) struct SmallTables {
    most: usize,
    held: Mutex<Held>,
}

struct Held {
    tables: LruCache<Path, Table>,
    /// What they count.
    bytes: usize,
}

#[derive(Clone)]
enum Table {
    Small(ObjectMeta, Bytes),
    /// It is read in pieces.
    Large,
}

impl SmallTables {
    /// At most so many bytes of tables. With none, each table is read in pieces.
    pub(crate) fn at_most(bytes: usize) -> Self {
        Self { most: bytes, held: Mutex::new(Held { tables: LruCache::unbounded(), bytes: 0 }) }
    }

    /// Reads a piece of a table; if it is small, with all of it.
    pub(crate) async fn read(
        &self,
        store: &dyn ObjectStore,
        at: &Path,
        piece: Range<u64>,
        options: GetOptions,
    ) -> Result<GetResult> {
        let tag = options.extensions.get::<ObjectStoreCallTag>();
        if tag.is_some_and(|tag| tag.retry.is_some()) {
            // The bytes were damaged: the store is to be asked again.
            self.forget(at);
            return store.get_opts(at, options).await;
        }
        let known = self.get(at);
        if let Some(Table::Small(meta, bytes)) = &known
            && let Some(answer) = answer(meta, bytes, &piece)
        {
            return Ok(answer);
        }
        if known.is_some() || piece.end > SMALL || self.most == 0 {
            return store.get_opts(at, options).await;
        }
        let all = GetOptions { range: Some(GetRange::Bounded(0..SMALL)), ..options.clone() };
        let result = store.get_opts(at, all).await?;
        let meta = result.meta.clone();
        let bytes = result.bytes().await?;
        if bytes.len() as u64 != meta.size.min(SMALL) {
            let source = format!("{} bytes of {at} came, of {}", bytes.len(), meta.size.min(SMALL));
            return Err(Error::Generic { store: "small tables", source: source.into() });
        }
        let answer = answer(&meta, &bytes, &piece);
        // A copy: what came may be a part of a larger buffer.
        let small = || Table::Small(meta.clone(), Bytes::copy_from_slice(&bytes));
        self.keep(at, if meta.size > SMALL { Table::Large } else { small() });
        match answer {
            Some(answer) => Ok(answer),
            // There is no such piece: the store says so.
            None => store.get_opts(at, options).await,
        }
    }

    /// Keeps a table that was written, if it is small.
    pub(crate) fn note_put(&self, at: &Path, payload: &PutPayload, put: &PutResult) {
        if self.most == 0 {
            return;
        }
        if payload.content_length() as u64 > SMALL {
            return self.keep(at, Table::Large);
        }
        // A copy: the payload may be a part of a larger piece of memory.
        let mut bytes = BytesMut::with_capacity(payload.content_length());
        payload.iter().for_each(|chunk| bytes.extend_from_slice(chunk));
        let meta = written(at, bytes.len(), put);
        self.keep(at, Table::Small(meta, bytes.freeze()));
    }

    fn get(&self, at: &Path) -> Option<Table> {
        self.held().tables.get(at).cloned()
    }

    fn keep(&self, at: &Path, table: Table) {
        let counts = table.counts();
        if counts > self.most {
            return;
        }
        let held = &mut *self.held();
        held.bytes += counts;
        let former = held.tables.put(at.clone(), table);
        held.bytes -= former.map_or(0, |former| former.counts());
        while held.bytes > self.most
            && let Some((_, oldest)) = held.tables.pop_lru()
        {
            held.bytes -= oldest.counts();
        }
    }

    fn forget(&self, at: &Path) {
        let held = &mut *self.held();
        let former = held.tables.pop(at);
        held.bytes -= former.map_or(0, |former| former.counts());
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SmallTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmallTables").field("most", &self.most).finish_non_exhaustive()
    }
}

impl Table {
    /// What it takes of the memory for all.
    fn counts(&self) -> usize {
        match self {
            Self::Small(_, bytes) => ENTRY + bytes.len(),
            Self::Large => ENTRY,
        }
    }
}

/// The store's answer to a request for this piece of an object that begins with `bytes`; none if they do not have it.
fn answer(meta: &ObjectMeta, bytes: &Bytes, piece: &Range<u64>) -> Option<GetResult> {
    let range = piece.start..piece.end.min(meta.size);
    let place = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
    // A copy: the database keeps pieces, and each would keep the memory of the whole.
    let piece = Bytes::copy_from_slice(bytes.get(place).filter(|piece| !piece.is_empty())?);
    Some(known_object::answer(meta.clone(), range, piece))
}

#[cfg(test)]
mod tests;
