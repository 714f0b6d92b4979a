//! Packs that jobs ending at about the same time share: group commit, in the terms of databases.
//!
//! A PUT costs the store about as much for forty small bitstreams as for four hundred. Jobs are small because
//! a crash costs those that are under way. While a pack of a Source is being written, the batches that arrive
//! are collected and written together in the next pack. A batch waits neither for a timer nor when no pack is
//! being written.

#[cfg(test)]
mod tests;
mod writing;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use model::{Location, SourceId};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::writing::{Waiting, Writing};
use crate::{PackBatch, PackLimits, Store, StoreError};

/// A stored batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The locations of its bitstreams, by number.
    pub members: Vec<Location>,
    /// The location of the whole pack, with its length; none for an empty batch. The store has acknowledged the PUT of
    /// its bytes.
    pub pack: Option<Location>,
}

/// Stores batches of small bitstreams in packs that they share with other batches of their Source. Cheap to
/// clone: all clones share. When the last clone is dropped, writes are cancelled.
#[derive(Clone)]
pub struct SharedPacks {
    writing: Arc<Writing>,
    /// One writer task per Source with a write under way. The tasks belong to no waiting caller: a caller
    /// that is dropped does not cancel the writes of others.
    writers: Arc<Mutex<JoinSet<()>>>,
}

impl SharedPacks {
    /// Packs in `store`, none of which exceeds `limits`.
    pub fn new(store: Store, limits: PackLimits) -> Self {
        let writing = Writing::new(store, limits, Arc::new(|_| {}));
        Self { writing: Arc::new(writing), writers: Arc::default() }
    }

    /// Calls `observer` for each stored pack, with the number of batches in it. Set it before anything is
    /// stored.
    #[must_use]
    pub fn observed(self, observer: impl Fn(usize) + Send + Sync + 'static) -> Self {
        let Writing { store, limits, .. } = &*self.writing;
        let writing = Writing::new(store.clone(), *limits, Arc::new(observer));
        Self { writing: Arc::new(writing), writers: Arc::default() }
    }

    /// An empty batch; `since` is when collecting its bitstreams begins (RS-4).
    pub fn batch(&self, since: Timestamp) -> PackBatch {
        PackBatch::new(since, self.writing.limits)
    }

    /// Stores the bitstreams of a batch, and returns their locations. If this future is dropped earlier, they may be
    /// stored or not; their locations are then unknown, and gc removes them.
    ///
    /// # Errors
    /// The error of the store; for a shared pack, every batch gets it.
    pub async fn store(&self, source: &SourceId, batch: PackBatch) -> Result<Packed, StoreError> {
        if batch.is_empty() {
            return Ok(Packed { members: Vec::new(), pack: None });
        }
        if batch.fills_half_a_pack() {
            // A batch this large shares its pack with no other, and small ones need not wait for it.
            let mut stored = self.writing.put(source, vec![batch]).await?;
            return stored.pop().ok_or_else(|| interrupted(&self.writing.store));
        }
        let (answer, answered) = oneshot::channel();
        if self.writing.join(source, Waiting { batch, answer }) {
            let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            // Reaps writers that have ended.
            while writers.try_join_next().is_some() {}
            writers.spawn(Arc::clone(&self.writing).write_all_of(source.clone()));
        }
        answered.await.unwrap_or_else(|_| Err(interrupted(&self.writing.store)))
    }

    /// Number of batches that wait for a write under way.
    pub fn waiting(&self) -> usize {
        self.writing.waiting()
    }
}

/// Only at shutdown of the runtime, or by a panic.
fn interrupted(store: &Store) -> StoreError {
    let message = "the write of a pack was interrupted".to_owned();
    StoreError::Unavailable { at: store.root().to_owned(), message }
}

impl fmt::Debug for SharedPacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPacks({:?}: {} waiting)", self.writing.store, self.waiting())
    }
}
