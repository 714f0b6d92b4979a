//! How a run leaves its place before its end: it waits, is paused, cancelled or let go.

use catalog::{Catalog, CatalogError};
use control::{ControlError, DesiredState, RunWait};
use harvest::{HarvestError, RunObserver as _, cancel};
use model::Phase;
use store::Key;

use super::{RunExecutor, RunExit};
use crate::notifier::OutboxWriter;
use crate::run_retry::{self, RunRetry};

impl RunExecutor<'_> {
    /// Leaves the place. The run is taken up when it is due, by whichever scheduler owns the Source then.
    pub(super) async fn park(&mut self, wait: RunWait) -> Result<RunExit, ControlError> {
        if !self.tell().await? {
            return self.stopped().await;
        }
        tracing::info!(run.id = %self.id, reason = wait.reason.as_str(), until = %wait.until, "the run waits");
        let now = self.context.clock.now();
        self.runs().park(self.lease, self.id, wait, now).await?;
        Ok(RunExit::Parked)
    }

    /// It stopped on request.
    pub(super) async fn stopped(&self) -> Result<RunExit, ControlError> {
        let wanted = self.runs().get(self.lease.source()).await?.map(|run| run.wanted);
        if wanted == Some(DesiredState::Cancel)
            && let Err(error) = self.cancel().await
        {
            return self.not_given_up(&error).await;
        }
        self.runs().let_go(self.lease, self.id, self.context.clock.now()).await?;
        tracing::info!(run.id = %self.id, ?wanted, "the run is let go");
        Ok(if self.keep.is_cancelled() { RunExit::Stopping } else { RunExit::Settled })
    }

    /// Cancelling it failed. The request stays for the next owner of the Source.
    pub(super) async fn not_given_up(&self, error: &HarvestError) -> Result<RunExit, ControlError> {
        match run_retry::next(error, 1, None, self.context.clock.now()) {
            RunRetry::Lost => Ok(RunExit::Lost),
            RunRetry::Again(_) | RunRetry::Park(_) | RunRetry::Stopped => {
                tracing::warn!(run.id = %self.id, %error, "the run could not be given up yet");
                Ok(RunExit::Later)
            }
            RunRetry::Fail => self.fail(format!("it could not be given up: {error}")).await,
        }
    }

    pub(super) async fn cancel(&self) -> Result<(), HarvestError> {
        if self.is_task() {
            // It leaves nothing half done.
            return Ok(());
        }
        let path = Key::Catalog(self.source.id.clone()).to_string();
        let opened =
            Catalog::open(self.context.store.object_store(), &path, self.context.catalogs.clone()).await;
        let catalog = match opened {
            Err(CatalogError::NotFound { .. }) => return Ok(()),
            opened => opened?,
        };
        // What it has settled stays, and is a change like any other.
        if let Some(run) = catalog.last_run().await?.filter(|run| run.phase != Phase::Finished) {
            OutboxWriter::of(self.context, &self.source.id).observe(&run).await?;
        }
        cancel(&catalog, &*self.context.clock).await?;
        self.context.bus.purge(&self.source.id).await?;
        Ok(catalog.close().await?)
    }
}
