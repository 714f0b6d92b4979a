//! Reads a batch, and checks mismatches once more.

use futures::TryStreamExt as _;
use model::{Bitstream, DamageFound};
use store::{Store, StoreError};

use super::Damaged;
use super::batch::{Batch, Read};
use super::pace::Pace;

/// Reads a batch. Returns the stored bytes of intact bitstreams, and each resource whose bytes are damaged or
/// missing.
pub(super) async fn read(store: Store, pace: Pace, batch: Batch) -> Result<(u64, Vec<Damaged>), StoreError> {
    let results = match batch.large() {
        Some(large) => vec![pass(&store, &pace, &large.bitstream).await],
        None => {
            pace.take(batch.stored()).await;
            let bitstreams: Vec<&Bitstream> = batch.reads.iter().map(|read| &read.bitstream).collect();
            let read = store.read_batch(&bitstreams).await;
            read.into_iter().map(|bytes| bytes.map(drop)).collect()
        }
    };
    let mut bytes = 0;
    let mut damaged = Vec::new();
    for (read, result) in batch.reads.into_iter().zip(results) {
        match result {
            Ok(()) => bytes += read.stored(),
            Err(StoreError::NotFound { .. } | StoreError::Damaged { .. }) => {
                damaged.extend(look_closer(&store, &pace, read).await?);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((bytes, damaged))
}

/// Reads a large bitstream in pieces.
async fn pass(store: &Store, pace: &Pace, bitstream: &Bitstream) -> Result<(), StoreError> {
    let mut bytes = store.open_verified(bitstream).await?;
    while let Some(piece) = bytes.try_next().await? {
        pace.take(piece.len() as u64).await;
    }
    Ok(())
}

/// Reads a bitstream again, and returns the damage that is still there: another process may have stored it again
/// meanwhile. Intact bytes that cannot be read count as damage too: then the record has a wrong location.
async fn look_closer(store: &Store, pace: &Pace, read: Read) -> Result<Vec<Damaged>, StoreError> {
    let found = store.diagnose(&read.bitstream).await?;
    let computed = &read.bitstream.computed;
    let whole =
        DamageFound { is_there: true, length: Some(computed.length()), sha256: Some(computed.sha256()) };
    if found == whole {
        match pass(store, pace, &read.bitstream).await {
            Ok(()) => return Ok(Vec::new()),
            Err(StoreError::NotFound { .. } | StoreError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read.held.into_iter().map(|held| Damaged { held, found: found.clone() }).collect())
}
