//! A harvest with all its stages in this process.

use std::sync::Arc;

use bus::BusError;
use futures::Stream;
use model::ResourceUri;
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
    #[error("{0}. Nothing is lost: the next `thresher sync` goes on with it")]
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
    let pipeline = beside(&parts).await?;
    let store = parts.store.clone();
    let harvesting = async {
        let harvest = Harvest::open(parts).await?;
        // Only now is it known that there is something to harvest: a mistyped URL claims no directory.
        store.note_source(note).await?;
        Ok(harvest.run().await?)
    };
    to_the_end(pipeline, harvesting, at_once).await
}

/// Fetches and judges anew what is damaged or missing, with the stages of any run. Nothing when none of `uris` has to be mended any more.
///
/// # Errors
/// [`PipelineError`]; nothing is lost, and the next harvest mends the rest.
pub async fn mend(
    parts: Parts,
    uris: impl Stream<Item = Result<ResourceUri, HarvestError>> + Send,
    at_once: &CancellationToken,
) -> Result<Option<Report>, PipelineError> {
    let pipeline = beside(&parts).await?;
    let mending = async {
        let (_, report) = Harvest::mend(parts, uris).await?;
        Ok(report)
    };
    to_the_end(pipeline, mending, at_once).await
}

/// The stages beside the owner that `parts` make.
async fn beside(parts: &Parts) -> Result<Pipeline, BusError> {
    let (bus, clock) = (Arc::clone(&parts.bus), Arc::clone(&parts.clock));
    Pipeline::start(bus, &parts.client, &parts.store, clock).await
}

/// Waits for the owner's work, unless it is stopped or a stage cannot go on.
async fn to_the_end<T>(
    pipeline: Pipeline,
    work: impl Future<Output = Result<T, PipelineError>>,
    at_once: &CancellationToken,
) -> Result<T, PipelineError> {
    let done = tokio::select! {
        done = work => done,
        () = at_once.cancelled() => Err(HarvestError::Stopped.into()),
        why = pipeline.trouble() => Err(PipelineError::Trouble(why)),
    };
    // After a failure nobody settles what the stages are still about: they end with the pipeline.
    let done = done?;
    pipeline.finish().await;
    Ok(done)
}
