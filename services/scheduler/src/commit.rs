//! Commits: what a harvest has decided becomes durable, with the run's counters, so that they tell the truth after a crash.

use std::collections::VecDeque;
use std::sync::Arc;

use catalog::{Batch, Catalog, CatalogError};
use model::{Phase, RunRecord, Seq};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::trouble;

/// Changes that are gathered before they are committed: each commit is a write to the store.
const GATHERED: usize = 2_000;
/// Commits that go on at a time: while one is written to the store, the catalog takes the next.
const AT_ONCE: usize = 2;

/// Portions that are committed while the next ones are made ready. What is not durable when the harvest is given up is as if it had not been decided.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// In their order.
    underway: VecDeque<Underway>,
    /// Held by the one that the catalog takes, so that they take effect in their order.
    turn: Arc<Mutex<()>>,
    /// What goes next, in its order.
    gathered: Vec<(Batch, Counted)>,
    /// The run as it was written last, with the last number given out.
    written: Option<(RunRecord, Seq)>,
}

/// A commit that goes on. It is given up with the harvest, as one that is waited for.
#[derive(Debug)]
struct Underway {
    commit: AbortOnDropHandle<Result<(), CatalogError>>,
    counted: Vec<Counted>,
}

/// What a batch does to the number of pending records.
#[derive(Debug)]
struct Counted {
    /// Planned so far in the run.
    planned: u64,
    /// Those that it ends.
    done: u64,
}

impl Commits {
    fn are_enough(&self) -> bool {
        self.gathered.iter().map(|(batch, _)| batch.len()).sum::<usize>() >= GATHERED
    }
}

impl Harvest {
    /// Commits a batch, together with all that was gathered before it.
    pub(crate) async fn commit(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.completed(batch);
        self.commits.gathered.push(portion);
        self.committed().await
    }

    /// Leaves a batch to be committed together with those that follow, behind those that go on. The catalog is to be asked for nothing that it may hold before
    /// it is [`committed`](Self::committed).
    pub(crate) async fn commit_behind(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.completed(batch);
        self.commits.gathered.push(portion);
        self.show();
        match self.commits.are_enough() {
            true => self.send_off().await,
            false => Ok(()),
        }
    }

    /// Waits until what was begun or gathered is durable.
    pub(crate) async fn committed(&mut self) -> Result<(), HarvestError> {
        self.send_off().await?;
        while let Some(oldest) = self.commits.underway.pop_front() {
            self.landed(oldest).await?;
        }
        Ok(())
    }

    /// Begins to commit what was gathered, once there is room for it.
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
            trouble = trouble::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
        };
        let (batches, counted): (Vec<_>, _) = self.commits.gathered.drain(..).unzip();
        let commit = tokio::spawn(commit_in_turn(Arc::clone(&self.catalog), batches, turn));
        self.commits.underway.push_back(Underway { commit: AbortOnDropHandle::new(commit), counted });
        Ok(())
    }

    /// Waits until what was begun is durable.
    async fn landed(&mut self, Underway { commit, counted }: Underway) -> Result<(), HarvestError> {
        tokio::select! {
            ended = commit => match ended {
                Ok(result) => result?,
                Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                // The runtime is shutting down.
                Err(_) => return Err(HarvestError::Stopped),
            },
            trouble = trouble::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
        }
        counted.iter().for_each(|counted| self.count_committed(counted));
        Ok(())
    }

    /// A batch with the run as it is now; without it, where nothing is new.
    fn completed(&mut self, mut batch: Batch) -> (Batch, Counted) {
        let now = (self.ahead.taken_from(&self.run), self.seq);
        if !batch.is_empty() || self.commits.written.as_ref() != Some(&now) {
            batch.put_run(&now.0);
            batch.put_last_seq(now.1);
            self.commits.written = Some(now);
        }
        // While dispatching, what is settled is not asked for again.
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

/// Lets the catalog take the next ones when it has these.
async fn commit_in_turn(
    catalog: Arc<Catalog>,
    batches: Vec<Batch>,
    turn: OwnedMutexGuard<()>,
) -> Result<(), CatalogError> {
    let handed_over = catalog.hand_over(batches).await?;
    drop(turn);
    handed_over.durable().await
}
