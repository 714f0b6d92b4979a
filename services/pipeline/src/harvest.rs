//! A harvest with all its stages in this process.

use std::sync::Arc;

use bus::BusError;
use futures::Stream;
use futures::future::BoxFuture;
use harvest::{Harvest, HarvestError, Parts, Report};
use model::ResourceUri;
use store::{SourceMarker, StoreError};
use tokio_util::sync::CancellationToken;

use crate::Pipeline;

/// Why a harvest stopped. Finished work stays, and the next harvest resumes.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The owner of the Source failed.
    #[error(transparent)]
    Harvest(#[from] HarvestError),
    /// The Source's marker could not be written to the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A stage fails repeatedly.
    #[error("{0}. Nothing is lost: the next `thresher sync` goes on with it")]
    Trouble(String),
}

/// Harvests a Source with its owner, a fetcher, a verifier and an unpacker, on the bus, the store and the client of
/// `parts`. `note` is written to the store once it is known that there is something to harvest. `at_once` stops the
/// harvest where it is, which loses no data.
///
/// # Errors
/// [`PipelineError`]. No data is lost, and the next harvest resumes.
pub fn harvest<'a>(
    parts: Parts,
    note: &'a SourceMarker,
    at_once: &'a CancellationToken,
) -> BoxFuture<'a, Result<Report, PipelineError>> {
    // Boxed here, so that all stages are compiled in this crate, and not once more in each of its users.
    Box::pin(harvest_whole(parts, note, at_once))
}

async fn harvest_whole(
    parts: Parts,
    note: &SourceMarker,
    at_once: &CancellationToken,
) -> Result<Report, PipelineError> {
    let pipeline = start_stages(&parts).await?;
    let store = parts.store.clone();
    let harvesting = async {
        let harvest = Harvest::open(parts).await?;
        // Only now is it known that there is something to harvest, so a mistyped URL claims no directory.
        store.note_source(note).await?;
        Ok(harvest.run().await?)
    };
    to_the_end(pipeline, harvesting, at_once).await
}

/// Fetches and verifies damaged or missing resources again, with the stages of any run. Does nothing if none of
/// `uris` needs a repair.
///
/// # Errors
/// [`PipelineError`]. No data is lost, and the next harvest repairs the rest.
pub async fn repair(
    parts: Parts,
    uris: impl Stream<Item = Result<ResourceUri, HarvestError>> + Send,
    at_once: &CancellationToken,
) -> Result<Option<Report>, PipelineError> {
    let pipeline = start_stages(&parts).await?;
    let repairing = async {
        let (_, report) = Harvest::repair(parts, uris).await?;
        Ok(report)
    };
    to_the_end(pipeline, repairing, at_once).await
}

/// The stages beside the owner, from `parts`.
async fn start_stages(parts: &Parts) -> Result<Pipeline, BusError> {
    let bus = Arc::clone(&parts.bus);
    let clock = Arc::clone(&parts.clock);
    Pipeline::start(bus, &parts.client, &parts.store, clock).await
}

/// Waits for the owner's work, unless it is stopped or a stage fails.
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
    // After a failure no outcome is settled any more, so the stages end with the pipeline.
    let done = done?;
    pipeline.finish().await;
    Ok(done)
}
