//! Why a backfill ends early.

use catalog::CatalogError;
use store::StoreError;

/// Why a backfill ended early. What was committed stays; the same command goes on.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    /// The catalog failed, or another process took it over.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller stopped it. All that was fetched is committed.
    #[error("it was stopped; the same backfill goes on from there")]
    Stopped,
}
