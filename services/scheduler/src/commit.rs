//! Commits: what a harvest has decided becomes durable, with the run's counters, so that they tell the truth after a crash.

use std::sync::Arc;

use catalog::{Batch, CatalogError};
use model::Phase;
use tokio_util::task::AbortOnDropHandle;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::lay::Ahead;
use crate::trouble;

/// Changes that are gathered while a commit goes on, before it is waited for.
const MOST_GATHERED: usize = 4096;

/// Portions that are committed while the next ones are made ready. What is not durable when the harvest is given up is as if it had not been decided.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    underway: Option<Underway>,
    /// What goes next, in its order.
    gathered: Vec<(Batch, Counted)>,
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
    fn is_busy(&self) -> bool {
        self.underway.as_ref().is_some_and(|underway| !underway.commit.is_finished())
    }

    /// Whether memory is better spent on something else than on more of it.
    fn is_full(&self) -> bool {
        self.gathered.iter().map(|(batch, _)| batch.len()).sum::<usize>() >= MOST_GATHERED
    }
}

impl Harvest {
    /// Commits a batch, once all before it are durable.
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

    /// Begins to commit a batch, or leaves it to be committed together with those that follow when the one before is durable. The catalog is to be asked for
    /// nothing that it may hold before it is [`committed`](Self::committed).
    pub(crate) async fn commit_behind(&mut self, batch: Batch) -> Result<(), HarvestError> {
        let portion = self.completed(batch);
        self.commits.gathered.push(portion);
        if self.commits.is_busy() && !self.commits.is_full() {
            return Ok(());
        }
        self.landed().await?;
        self.send_off();
        Ok(())
    }

    /// Waits until what was begun or gathered is durable.
    pub(crate) async fn committed(&mut self) -> Result<(), HarvestError> {
        self.landed().await?;
        self.send_off();
        self.landed().await
    }

    /// Begins to commit what was gathered.
    fn send_off(&mut self) {
        if self.commits.gathered.is_empty() {
            return;
        }
        let (batches, counted): (Vec<_>, _) = self.commits.gathered.drain(..).unzip();
        let catalog = Arc::clone(&self.catalog);
        let commit = tokio::spawn(async move { catalog.commit_all(batches).await });
        self.commits.underway = Some(Underway { commit: AbortOnDropHandle::new(commit), counted });
    }

    /// Waits until what was begun is durable.
    async fn landed(&mut self) -> Result<(), HarvestError> {
        let Some(Underway { commit, counted }) = self.commits.underway.take() else { return Ok(()) };
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
