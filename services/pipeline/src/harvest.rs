//! A harvest with all its stages in this process.

use std::sync::Arc;

use bus::BusError;
use scheduler::{Harvest, HarvestError, Parts, Report};
use store::{SourceNote, StoreError};
use tokio_util::sync::CancellationToken;

use crate::Pipeline;

/// Why a harvest could not go on. What it had done stays done, and the next one takes it up again.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The owner of the Source could not go on.
    #[error(transparent)]
    Harvest(#[from] HarvestError),
    /// The Source could not be noted in the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A stage fails again and again.
    #[error("{0}. Nothing is lost: run the same command again")]
    Trouble(String),
}

/// Harvests a Source with fetcher, verifier and unpacker beside its owner, on the bus, the store and the client of `parts`. `note` is left in
/// the store once it is known that there is something to harvest. `at_once` ends it where it is, which loses nothing.
///
/// # Errors
/// [`PipelineError`]; nothing is lost, and the next harvest goes on.
pub async fn harvest(
    parts: Parts,
    note: &SourceNote,
    at_once: &CancellationToken,
) -> Result<Report, PipelineError> {
    let (bus, clock) = (Arc::clone(&parts.bus), Arc::clone(&parts.clock));
    let store = parts.store.clone();
    let pipeline = Pipeline::start(bus, &parts.client, &store, clock).await?;
    let harvesting = async {
        let harvest = Harvest::open(parts).await?;
        // Only now is it known that there is something to harvest: a mistyped URL claims no directory.
        store.note_source(note).await?;
        Ok(harvest.run().await?)
    };
    let report = tokio::select! {
        report = harvesting => report,
        () = at_once.cancelled() => Err(HarvestError::Stopped.into()),
        why = pipeline.trouble() => Err(PipelineError::Trouble(why)),
    };
    // After a failure nobody settles what the stages are still about: they end with the pipeline.
    let report = report?;
    pipeline.finish().await;
    Ok(report)
}
