//! Submitted batches that are not durable yet.

use std::sync::atomic::{AtomicBool, Ordering};

use slatedb::{Db, WriteHandle};
use tokio::sync::Mutex;

use crate::config::CatalogConfig;
use crate::error::CatalogError;
use crate::reader::within;

/// Submitted batches that are not known to be durable yet. If it is dropped before they are, their state is
/// unknown: the catalog then refuses all later batches ([`CatalogError::Poisoned`]).
#[must_use = "what is handed over is not durable"]
pub struct InFlightBatches<'a> {
    db: &'a Db,
    flushing: &'a Mutex<()>,
    config: &'a CatalogConfig,
    path: &'a str,
    /// The last of them: batches become durable in the order of their submission.
    last: Option<(WriteHandle, CommitGuard<'a>)>,
}

/// Marks a submitted batch whose result is unknown. If it is dropped before the result is known, the catalog
/// refuses later batches.
pub(crate) struct CommitGuard<'a>(Option<&'a AtomicBool>);

impl<'a> InFlightBatches<'a> {
    pub(crate) fn nothing(
        db: &'a Db,
        flushing: &'a Mutex<()>,
        config: &'a CatalogConfig,
        path: &'a str,
    ) -> Self {
        Self { db, flushing, config, path, last: None }
    }

    /// One more batch.
    pub(crate) fn then(&mut self, handle: WriteHandle, doubt: CommitGuard<'a>) {
        if let Some((_, before)) = self.last.replace((handle, doubt)) {
            // This guard covers the earlier batches, too.
            before.settle();
        }
    }

    /// Returns once all of them are durable. Concurrent callers share one write to the store.
    ///
    /// # Errors
    /// [`CatalogError::Fenced`] when another process has taken the catalog over, [`CatalogError::TimedOut`]
    /// and [`CatalogError::Store`] when the store fails.
    pub async fn durable(self) -> Result<(), CatalogError> {
        within(self.path, "written", self.config, self.flushed()).await
    }

    pub(crate) async fn flushed(self) -> Result<(), CatalogError> {
        let Some((handle, doubt)) = self.last else { return Ok(()) };
        let failed = |error| CatalogError::writing(self.path, error);
        {
            let _turn = self.flushing.lock().await;
            if self.db.status().durable_seq < handle.seqnum() {
                self.db.flush().await.map_err(failed)?;
            }
        }
        handle.await_durable().await.map_err(failed)?;
        doubt.settle();
        Ok(())
    }
}

impl<'a> CommitGuard<'a> {
    pub(crate) fn about(in_doubt: &'a AtomicBool) -> Self {
        Self(Some(in_doubt))
    }

    fn settle(mut self) {
        self.0 = None;
    }
}

impl Drop for CommitGuard<'_> {
    fn drop(&mut self) {
        if let Some(in_doubt) = self.0 {
            in_doubt.store(true, Ordering::Release);
        }
    }
}
