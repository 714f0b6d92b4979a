//! The only way of a run to its catalog. Decisions become durable together with the run's counters, so that the
//! counters are right after a crash.
//!
//! Batches may be gathered and committed in the background while the next entries are read. A stage gets the catalog
//! from [`RunContext::catalog`], which waits for these commits first: no decision is based on a state that is about to
//! change.

use std::collections::VecDeque;
use std::sync::Arc;

use catalog::{Batch, Catalog, CatalogError};
use model::{PendingRecord, ResourceRecord, ResourceUri, RunRecord, Seq};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::error::HarvestError;
use crate::run::held_back::HeldBack;
use crate::run::pending_bound::PendingBound;
use crate::run::stored_bound::StoredBound;
use crate::run::{RunContext, store_health};

/// Changes that are gathered before a commit, because each commit is a write to the store.
const GATHERED: usize = 4_000;
/// Concurrent commits: while one is written to the store, the catalog accepts the next.
const AT_ONCE: usize = 2;

/// The writer of a run's catalog.
#[derive(Debug)]
pub(crate) struct CatalogWriter {
    catalog: Arc<Catalog>,
    /// Commits in progress, in submission order.
    underway: VecDeque<Underway>,
    /// Held by the commit that the catalog accepts, so that commits take effect in order.
    turn: Arc<Mutex<()>>,
    /// Batches to commit next, in order.
    gathered: Vec<(Batch, Counted)>,
    /// The run as last written, with the last sequence number used.
    written: Option<(RunRecord, Seq)>,
    seq: Seq,
    /// Which resources may have a pending record.
    pending_bound: PendingBound,
    /// Which resources may be stored.
    stored_bound: StoredBound,
    left: Left,
    /// Counters of documents that are not recorded as read yet.
    held_back: HeldBack,
}

/// Number of pending records left: planned ones are added, settled ones subtracted.
#[derive(Debug, Default)]
struct Left {
    pending: u64,
    planned: u64,
}

/// A commit in progress. It is cancelled with the harvest, like one that is awaited.
#[derive(Debug)]
struct Underway {
    commit: AbortOnDropHandle<Result<(), CatalogError>>,
    counted: Vec<Counted>,
}

/// Effect of a batch on the number of pending records.
#[derive(Debug)]
struct Counted {
    /// Records planned so far in the run.
    planned: u64,
    /// Pending records that the batch completes.
    done: u64,
}

impl CatalogWriter {
    /// The writer for a run; `is_resumed` if an earlier process may have planned something.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub(crate) async fn open(catalog: Catalog, is_resumed: bool) -> Result<Self, CatalogError> {
        Ok(Self {
            underway: VecDeque::new(),
            turn: Arc::default(),
            gathered: Vec::new(),
            written: None,
            seq: catalog.last_seq().await?,
            pending_bound: PendingBound::after(is_resumed),
            stored_bound: StoredBound::after(!catalog.holds_no_resource().await?),
            left: Left::default(),
            held_back: HeldBack::default(),
            catalog: Arc::new(catalog),
        })
    }

    /// Pending records left.
    pub(crate) fn pending(&self) -> u64 {
        self.left.pending
    }

    fn has_enough(&self) -> bool {
        self.gathered.iter().map(|(batch, _)| batch.len()).sum::<usize>() >= GATHERED
    }

    /// Adds the run's current state to a batch, if it changed.
    fn complete(&mut self, run: &RunRecord, mut batch: Batch) -> (Batch, Counted) {
        let now = (self.held_back.taken_from(run), self.seq);
        if !batch.is_empty() || self.written.as_ref() != Some(&now) {
            batch.put_run(&now.0);
            batch.put_last_seq(now.1);
            self.written = Some(now);
        }
        for uri in batch.resources() {
            self.stored_bound.note(uri);
        }
        let counted = Counted { planned: run.counters.planned, done: batch.pending_done() };
        (batch, counted)
    }

    fn count(&mut self, counted: &Counted) {
        let Counted { planned, done } = *counted;
        self.left.pending =
            (self.left.pending + planned.saturating_sub(self.left.planned)).saturating_sub(done);
        self.left.planned = planned;
    }
}

impl RunContext {
    /// The catalog, once all submitted and gathered batches are durable.
    ///
    /// # Errors
    /// When one of them failed.
    pub(crate) async fn catalog(&mut self) -> Result<Arc<Catalog>, HarvestError> {
        self.committed().await?;
        Ok(Arc::clone(&self.writer.catalog))
    }

    /// Commits a batch, together with all batches gathered before it.
    pub(crate) async fn commit(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.writer.complete(&self.run, batch);
        self.writer.gathered.push(portion);
        self.committed().await
    }

    /// Gathers a batch, to be committed together with later ones, after the commits in progress.
    pub(crate) async fn commit_behind(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.writer.complete(&self.run, batch);
        self.writer.gathered.push(portion);
        self.show();
        if self.writer.has_enough() { self.submit().await } else { Ok(()) }
    }

    /// Commits a batch in the background, together with all gathered before it, once what was submitted earlier is
    /// durable. So a crash costs one such batch, and the work that follows.
    pub(crate) async fn commit_next(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.writer.complete(&self.run, batch);
        self.writer.gathered.push(portion);
        while let Some(oldest) = self.writer.underway.pop_front() {
            self.landed(oldest).await?;
        }
        self.submit().await
    }

    /// Waits until all submitted and gathered batches are durable.
    async fn committed(&mut self) -> Result<(), HarvestError> {
        self.submit().await?;
        while let Some(oldest) = self.writer.underway.pop_front() {
            self.landed(oldest).await?;
        }
        Ok(())
    }

    /// Submits the gathered batches once there is room.
    async fn submit(&mut self) -> Result<(), HarvestError> {
        if self.writer.gathered.is_empty() {
            return Ok(());
        }
        while self.writer.underway.len() >= AT_ONCE
            && let Some(oldest) = self.writer.underway.pop_front()
        {
            self.landed(oldest).await?;
        }
        let turn = tokio::select! {
            turn = Arc::clone(&self.writer.turn).lock_owned() => turn,
            failure = store_health::lasting(&self.store) => return Err(HarvestError::StoreFailed(failure)),
        };
        let (batches, counted): (Vec<_>, _) = self.writer.gathered.drain(..).unzip();
        let commit = tokio::spawn(commit_in_turn(Arc::clone(&self.writer.catalog), batches, turn));
        self.writer.underway.push_back(Underway { commit: AbortOnDropHandle::new(commit), counted });
        Ok(())
    }

    /// Waits until a submitted commit is durable.
    async fn landed(&mut self, Underway { commit, counted }: Underway) -> Result<(), HarvestError> {
        tokio::select! {
            ended = commit => match ended {
                Ok(result) => result?,
                Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                // The runtime is shutting down.
                Err(_) => return Err(HarvestError::Stopped),
            },
            failure = store_health::lasting(&self.store) => return Err(HarvestError::StoreFailed(failure)),
        }
        self.push.count_lags(self.clock.now());
        counted.iter().for_each(|counted| self.writer.count(counted));
        self.show();
        Ok(())
    }

    /// The next sequence number of a pending record.
    pub(crate) fn next_seq(&mut self) -> Seq {
        self.writer.seq = self.writer.seq.next();
        self.writer.seq
    }

    /// Whether any pending record may exist.
    pub(crate) fn is_anything_planned(&self) -> bool {
        self.writer.pending_bound.is_anything_planned()
    }

    /// Whether a resource may have a pending record.
    pub(crate) fn may_be_pending(&self, uri: &ResourceUri) -> bool {
        self.writer.pending_bound.holds(uri)
    }

    /// Writes the pending record of a resource.
    pub(crate) fn put_pending(&mut self, batch: &mut Batch, uri: &ResourceUri, record: &PendingRecord) {
        self.writer.pending_bound.note(uri);
        batch.put_pending(uri, record);
    }

    /// Records that no pending record is left.
    pub(crate) fn note_nothing_pending(&mut self) {
        self.writer.pending_bound = PendingBound::Nowhere;
    }

    /// After a crash: sets the number of pending records left.
    pub(crate) fn count_left(&mut self, pending: u64) {
        self.writer.left = Left { pending, planned: self.run.counters.planned };
    }

    /// Whether no resource was stored when the run began, and none was since.
    pub(crate) fn is_catalog_empty(&self) -> bool {
        self.writer.stored_bound.is_nothing()
    }

    /// The stored records of these resources. The catalog is asked for those that it may hold.
    pub(crate) async fn records_of(
        &mut self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<Box<ResourceRecord>>>, HarvestError> {
        let (places, asked) = chosen(uris, |uri| self.writer.stored_bound.holds(uri));
        if asked.is_empty() {
            return Ok(uris.iter().map(|_| None).collect());
        }
        let found = self.catalog().await?.resources_many(&asked).await?;
        Ok(placed(uris.len(), places, found.into_iter().map(|record| record.map(Box::new))))
    }

    /// The pending records of these resources. The catalog is asked for those that it may hold.
    pub(crate) async fn plans_of(
        &mut self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<PendingRecord>>, HarvestError> {
        let (places, asked) = chosen(uris, |uri| self.may_be_pending(uri));
        if asked.is_empty() {
            return Ok(uris.iter().map(|_| None).collect());
        }
        let found = self.catalog().await?.pending_many(&asked).await?;
        Ok(placed(uris.len(), places, found))
    }

    /// Records that what a resource was planned for is done.
    pub(crate) fn end_plan(&self, batch: &mut Batch, uri: &ResourceUri) {
        if self.may_be_pending(uri) {
            batch.delete_pending(uri);
        } else {
            batch.note_plan_done();
        }
    }

    /// The counters that a document recorded later would add to; give them to [`Self::hold_back`] afterwards.
    pub(crate) fn counted(&self) -> HeldBack {
        HeldBack::of(&self.run)
    }

    /// Keeps the counts since `before` out of the run's record until [`Self::release_held_back`].
    pub(crate) fn hold_back(&mut self, before: HeldBack) {
        self.writer.held_back = self.writer.held_back.with(before, HeldBack::of(&self.run));
    }

    /// Counts resources that match their stored records; they are held back too.
    pub(crate) fn hold_back_unchanged(&mut self, resources: u64) {
        self.run.counters.unchanged += resources;
        self.writer.held_back.unchanged += resources;
    }

    /// The documents of the held-back counts are recorded with the next commit.
    pub(crate) fn release_held_back(&mut self) {
        self.writer.held_back = HeldBack::default();
    }

    /// The documents of the held-back counts are read again: they are counted then.
    pub(crate) fn discard_held_back(&mut self) {
        self.run = std::mem::take(&mut self.writer.held_back).taken_from(&self.run);
    }

    /// Closes the catalog.
    ///
    /// # Errors
    /// When a commit failed, or the catalog cannot be flushed.
    pub(crate) async fn close(&mut self) -> Result<(), HarvestError> {
        Ok(self.catalog().await?.close().await?)
    }
}

/// Those of the resources that are asked for, and their places among all.
fn chosen(uris: &[ResourceUri], is_asked: impl Fn(&ResourceUri) -> bool) -> (Vec<usize>, Vec<ResourceUri>) {
    let asked = uris.iter().enumerate().filter(|(_, uri)| is_asked(uri));
    asked.map(|(place, uri)| (place, uri.clone())).unzip()
}

/// What was found, at the places of those that were asked for.
fn placed<T>(count: usize, places: Vec<usize>, found: impl IntoIterator<Item = Option<T>>) -> Vec<Option<T>> {
    let mut all: Vec<Option<T>> = (0..count).map(|_| None).collect();
    for (place, found) in places.into_iter().zip(found) {
        all[place] = found;
    }
    all
}

/// Submits to the catalog in order, one after the other.
async fn commit_in_turn(
    catalog: Arc<Catalog>,
    batches: Vec<Batch>,
    turn: OwnedMutexGuard<()>,
) -> Result<(), CatalogError> {
    let handed_over = catalog.submit(batches).await?;
    drop(turn);
    handed_over.durable().await
}
