//! Commits: makes decisions durable together with the run's counters, so that the counters are right after a crash.

use std::collections::VecDeque;
use std::sync::Arc;

use catalog::{Batch, Catalog, CatalogError};
use model::{Phase, RunRecord, Seq};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::store_health;

/// Changes that are gathered before a commit, because each commit is a write to the store.
const GATHERED: usize = 2_000;
/// Concurrent commits: while one is written to the store, the catalog accepts the next.
const AT_ONCE: usize = 2;

/// Commits of earlier portions, in progress while the next ones are prepared. A decision that is not durable when the
/// harvest is cancelled counts as never made.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// In submission order.
    underway: VecDeque<Underway>,
    /// Held by the commit that the catalog accepts, so that commits take effect in order.
    turn: Arc<Mutex<()>>,
    /// Batches to commit next, in order.
    gathered: Vec<(Batch, Counted)>,
    /// The run as last written, with the last sequence number used.
    written: Option<(RunRecord, Seq)>,
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

impl Commits {
    fn are_enough(&self) -> bool {
        self.gathered.iter().map(|(batch, _)| batch.len()).sum::<usize>() >= GATHERED
    }
}

impl Harvest {
    /// Commits a batch, together with all batches gathered before it.
    pub(crate) async fn commit(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.completed(batch);
        self.commits.gathered.push(portion);
        self.committed().await
    }

    /// Gathers a batch, to be committed together with later ones, after the commits in progress. Do not read from the
    /// catalog what it changes before it is [`committed`](Self::committed).
    pub(crate) async fn commit_behind(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.completed(batch);
        self.commits.gathered.push(portion);
        self.show();
        match self.commits.are_enough() {
            true => self.send_off().await,
            false => Ok(()),
        }
    }

    /// Waits until all submitted and gathered batches are durable.
    pub(crate) async fn committed(&mut self) -> Result<(), HarvestError> {
        self.send_off().await?;
        while let Some(oldest) = self.commits.underway.pop_front() {
            self.landed(oldest).await?;
        }
        Ok(())
    }

    /// Submits the gathered batches once there is room.
    async fn send_off(&mut self) -> Result<(), HarvestError> {
        if self.commits.gathered.is_empty() {
            return Ok(());
        }
        while self.commits.underway.len() >= AT_ONCE
            && let Some(oldest) = self.commits.underway.pop_front()
        {
            self.landed(oldest).await?;
        }
        let turn = tokio::select! {
            turn = Arc::clone(&self.commits.turn).lock_owned() => turn,
            trouble = store_health::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
        };
        let (batches, counted): (Vec<_>, _) = self.commits.gathered.drain(..).unzip();
        let commit = tokio::spawn(commit_in_turn(Arc::clone(&self.catalog), batches, turn));
        self.commits.underway.push_back(Underway { commit: AbortOnDropHandle::new(commit), counted });
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
            trouble = store_health::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
        }
        counted.iter().for_each(|counted| self.count_committed(counted));
        Ok(())
    }

    /// Adds the run's current state to a batch, if it changed.
    fn completed(&mut self, mut batch: Batch) -> (Batch, Counted) {
        let now = (self.ahead.taken_from(&self.run), self.seq);
        if !batch.is_empty() || self.commits.written.as_ref() != Some(&now) {
            batch.put_run(&now.0);
            batch.put_last_seq(now.1);
            self.commits.written = Some(now);
        }
        // During dispatch, settled records are not looked up again.
        self.is_bare &= self.run.phase == Phase::Dispatching || !batch.puts_resources();
        let counted = Counted { planned: self.run.counters.planned, done: batch.pending_done() };
        (batch, counted)
    }

    fn count_committed(&mut self, counted: &Counted) {
        let Counted { planned, done } = *counted;
        self.count_lags();
        self.left.pending =
            (self.left.pending + planned.saturating_sub(self.left.planned)).saturating_sub(done);
        self.left.planned = planned;
        self.show();
    }
}

/// Submits to the catalog in order, one after the other.
async fn commit_in_turn(
    catalog: Arc<Catalog>,
    batches: Vec<Batch>,
    turn: OwnedMutexGuard<()>,
) -> Result<(), CatalogError> {
    let handed_over = catalog.hand_over(batches).await?;
    drop(turn);
    handed_over.durable().await
}
