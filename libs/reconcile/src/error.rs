//! Why a reconciliation stopped.

use std::io;

use catalog::CatalogError;

/// A temporary file of a spool cannot be written or read: usually the disk is full.
#[derive(Debug, thiserror::Error)]
#[error("a temporary file failed: {0}")]
pub struct SpoolError(#[from] pub io::Error);

/// Why a reconciliation stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The spool of entries failed. The documents must be read again.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl From<io::Error> for ReconcileError {
    fn from(error: io::Error) -> Self {
        Self::Spool(SpoolError(error))
    }
}
