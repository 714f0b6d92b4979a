//! Why a report card cannot be made.

use catalog::CatalogError;

use crate::claims::SpoolError;

/// Why a report card cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The store fails, or a record cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// There is no room for temporary files.
    #[error(transparent)]
    Spool(#[from] SpoolError),
}
