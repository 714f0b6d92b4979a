//! The writers: one per Source with a write under way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use model::SourceId;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use super::Packed;
use crate::{PackBatch, PackBuilder, PackLimits, Store, StoreError};

/// Called with the number of batches in a stored pack.
type Observer = Arc<dyn Fn(usize) + Send + Sync>;

/// A batch, and the channel for what became of it.
pub(super) struct Waiting {
    pub(super) batch: PackBatch,
    pub(super) answer: oneshot::Sender<Result<Packed, StoreError>>,
}

/// State shared by the writers.
pub(super) struct Writing {
    pub(super) store: Store,
    pub(super) limits: PackLimits,
    observer: Observer,
    /// Each Source with a writer, and the batches that its writer has not started on.
    waiting: Mutex<HashMap<SourceId, Vec<Waiting>>>,
}

/// The turn of a writer. However it ends, the waiting batches go on.
struct Turn<'a> {
    of: &'a Writing,
    source: &'a SourceId,
    is_over: bool,
}

impl Writing {
    pub(super) fn new(store: Store, limits: PackLimits, observer: Observer) -> Self {
        Self { store, limits, observer, waiting: Mutex::default() }
    }

    /// Adds a batch. Returns whether a writer has to be started: otherwise the running one takes it.
    pub(super) fn join(&self, source: &SourceId, waiting: Waiting) -> bool {
        match self.lock().entry(source.clone()) {
            Entry::Occupied(mut others) => {
                others.get_mut().push(waiting);
                false
            }
            Entry::Vacant(none) => {
                none.insert(vec![waiting]);
                true
            }
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    /// Writes the waiting batches, and those that arrive meanwhile, until none is left.
    pub(super) async fn write_all_of(self: Arc<Self>, source: SourceId) {
        let mut turn = Turn { of: &self, source: &source, is_over: false };
        while let Some(waiting) = turn.next() {
            // If one pack cannot hold all of them, the packs are written concurrently.
            let packs = self.divide(waiting).into_iter().map(|group| self.write(&source, group));
            join_all(packs).await;
        }
    }

    /// Divides the batches into packs. A batch stays in one piece: its job waits for one pack only.
    fn divide(&self, waiting: Vec<Waiting>) -> Vec<Vec<Waiting>> {
        let mut groups: Vec<Vec<Waiting>> = Vec::new();
        let mut bytes = 0;
        let mut members = 0;
        for one in waiting {
            bytes += one.batch.cost();
            members += one.batch.len();
            match groups.last_mut() {
                Some(group) if bytes <= self.limits.bytes && members <= self.limits.members => {
                    group.push(one)
                }
                _ => {
                    bytes = one.batch.cost();
                    members = one.batch.len();
                    groups.push(vec![one]);
                }
            }
        }
        groups
    }

    /// Writes a pack, and answers all batches in it.
    async fn write(&self, source: &SourceId, group: Vec<Waiting>) {
        let (batches, answers): (Vec<_>, Vec<_>) =
            group.into_iter().map(|Waiting { batch, answer }| (batch, answer)).unzip();
        // Callers that have gone meanwhile need no answer.
        match self.put(source, batches).await {
            Ok(stored) => answers.into_iter().zip(stored).for_each(|(answer, stored)| {
                answer.send(Ok(stored)).ok();
            }),
            Err(error) => {
                let error = Arc::new(error);
                for answer in answers {
                    answer.send(Err(StoreError::Shared(Arc::clone(&error)))).ok();
                }
            }
        }
    }

    /// Puts a pack of these batches, and gives what became of each.
    pub(super) async fn put(
        &self,
        source: &SourceId,
        batches: Vec<PackBatch>,
    ) -> Result<Vec<Packed>, StoreError> {
        let lengths: Vec<usize> = batches.iter().map(PackBatch::len).collect();
        let Some(since) = batches.iter().map(PackBatch::since).min() else { return Ok(Vec::new()) };
        let room = batches.iter().map(PackBatch::cost).sum();
        let mut pack = PackBuilder::with_room(source.clone(), since, self.limits, room)?;
        for piece in batches.into_iter().flat_map(PackBatch::into_pieces) {
            for member in piece.members() {
                pack.add(member)?;
            }
            // A copied piece is freed, so that few bytes are held twice, and other tasks may run.
            drop(piece);
            yield_now().await;
        }
        let pack = pack.finish()?;
        let mut locations = self.store.put_pack(&pack).await?.into_iter();
        (self.observer)(lengths.len());
        let pack = pack.location();
        let packed =
            |length| Packed { members: locations.by_ref().take(length).collect(), pack: pack.clone() };
        Ok(lengths.into_iter().map(packed).collect())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SourceId, Vec<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// The batches that arrived since the last call. With none, the turn ends and None is returned; the next
    /// batch starts another.
    fn next(&mut self) -> Option<Vec<Waiting>> {
        let mut sources = self.of.lock();
        let mut waiting = sources.get_mut(self.source).map(std::mem::take).unwrap_or_default();
        // The job of a cancelled batch is redelivered, and stores its bitstreams then.
        waiting.retain(|one| !one.answer.is_closed());
        if waiting.is_empty() {
            sources.remove(self.source);
            self.is_over = true;
            return None;
        }
        Some(waiting)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.of.lock().remove(self.source);
        }
    }
}
