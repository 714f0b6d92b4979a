//! Commits: what a harvest has decided becomes durable, with the run's counters, so that they tell the truth after a crash.

use std::sync::Arc;

use catalog::{Batch, CatalogError};
use model::Phase;
use tokio_util::task::AbortOnDropHandle;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::lay::Ahead;
use crate::trouble;

/// A commit that goes on while the next one is made ready. It is given up with the harvest, as one that is waited for.
#[derive(Debug)]
pub(crate) struct Underway {
    commit: AbortOnDropHandle<Result<(), CatalogError>>,
    counted: Counted,
}

/// What a batch does to the number of pending records.
#[derive(Debug)]
struct Counted {
    /// Planned so far in the run.
    planned: u64,
    /// Those that it ends.
    done: u64,
}

impl Harvest {
    /// Commits a batch, once the one before is durable.
    pub(crate) async fn commit(&mut self, batch: Batch) -> Result<(), HarvestError> {
        self.committed().await?;
        let (batch, counted) = self.completed(batch);
        tokio::select! {
            result = self.catalog.commit(batch) => result?,
            trouble = trouble::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
        }
        self.count_committed(&counted);
        Ok(())
    }

    /// Begins to commit a batch, once the one before is durable. The catalog is to be asked for nothing that it may hold before it is
    /// [`committed`](Self::committed).
    pub(crate) async fn commit_behind(&mut self, batch: Batch) -> Result<(), HarvestError> {
        self.committed().await?;
        let (batch, counted) = self.completed(batch);
        let catalog = Arc::clone(&self.catalog);
        let commit = tokio::spawn(async move { catalog.commit(batch).await });
        self.underway = Some(Underway { commit: AbortOnDropHandle::new(commit), counted });
        Ok(())
    }

    /// Waits until what was begun is durable.
    pub(crate) async fn committed(&mut self) -> Result<(), HarvestError> {
        let Some(Underway { commit, counted }) = self.underway.take() else { return Ok(()) };
        tokio::select! {
            ended = commit => match ended {
                Ok(result) => result?,
                Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                // The runtime is shutting down.
                Err(_) => return Err(HarvestError::Stopped),
            },
            trouble = trouble::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
        }
        self.count_committed(&counted);
        Ok(())
    }

    /// A batch with the run as it is now.
    fn completed(&mut self, mut batch: Batch) -> (Batch, Counted) {
        match self.ahead == Ahead::default() {
            true => batch.put_run(&self.run),
            false => batch.put_run(&self.ahead.taken_from(&self.run)),
        }
        batch.put_last_seq(self.seq);
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
