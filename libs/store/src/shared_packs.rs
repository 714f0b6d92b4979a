//! Packs that are shared by the jobs that end at about the same time: what databases call group commit.
//!
//! A PUT costs the store about as much for forty small bitstreams as for four hundred, and jobs are small for a reason of their own: a crash costs
//! those that are under way. So while a pack of a Source is being written, the batches that come meanwhile wait for each other, and travel together
//! in the next one. Nobody waits when nothing is being written, and nobody waits for a timer.

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

/// Stores batches of small bitstreams in packs that they share with others of their Source. Cheap to clone: all clones share. With the last one,
/// writes end where they are.
#[derive(Clone)]
pub struct SharedPacks {
    writing: Arc<Writing>,
    /// One for each Source of which something is being written: it belongs to none of those who wait for it, so none that is dropped takes
    /// along what others wait for.
    writers: Arc<Mutex<JoinSet<()>>>,
}

impl SharedPacks {
    /// Packs in `store`, none of which exceeds `limits`.
    pub fn new(store: Store, limits: PackLimits) -> Self {
        let writing = Writing::new(store, limits, Arc::new(|_| {}));
        Self { writing: Arc::new(writing), writers: Arc::default() }
    }

    /// Tells `observer` of each pack that is stored how many batches share it. To be said before anything is stored.
    #[must_use]
    pub fn observed(self, observer: impl Fn(usize) + Send + Sync + 'static) -> Self {
        let Writing { store, limits, .. } = &*self.writing;
        let writing = Writing::new(store.clone(), *limits, Arc::new(observer));
        Self { writing: Arc::new(writing), writers: Arc::default() }
    }

    /// An empty batch; `since` is when its bitstreams begin to be collected (RS-4).
    pub fn batch(&self, since: Timestamp) -> PackBatch {
        PackBatch::new(since, self.writing.limits)
    }

    /// Stores the bitstreams of a batch, and gives their locations by their numbers. When this is dropped before, they may be stored or not: then no one knows where
    /// they lie, and they are garbage.
    ///
    /// # Errors
    /// What the store says; of a pack that is shared, to all who share it.
    pub async fn store(&self, source: &SourceId, batch: PackBatch) -> Result<Vec<Location>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        if batch.fills_half_a_pack() {
            // No other of its kind would go with it, and small ones need not wait for so many bytes.
            return Ok(self.writing.put(source, vec![batch]).await?.concat());
        }
        let (answer, answered) = oneshot::channel();
        if self.writing.join(source, Waiting { batch, answer }) {
            let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that have ended.
            while writers.try_join_next().is_some() {}
            writers.spawn(Arc::clone(&self.writing).write_all_of(source.clone()));
        }
        answered.await.unwrap_or_else(|_| Err(interrupted(&self.writing.store)))
    }

    /// How many batches wait for a write that is under way.
    pub fn waiting(&self) -> usize {
        self.writing.waiting()
    }
}

/// Only when the runtime shuts down, or by a panic.
fn interrupted(store: &Store) -> StoreError {
    let message = "the write of a pack was interrupted".to_owned();
    StoreError::Unavailable { at: store.root().to_owned(), message }
}

impl fmt::Debug for SharedPacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPacks({:?}: {} waiting)", self.writing.store, self.waiting())
    }
}
