//! Why an export failed.

use std::io;

use catalog::CatalogError;
use store::StoreError;

/// Why an export was not made, or not to its end. The same export resumes from what it has written so far.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The target or the options are refused.
    #[error("{0}")]
    Refused(String),
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store cannot be read. A damaged or missing bitstream is no error: it is left out and reported.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The export cannot be written.
    #[error(
        "cannot write the export: {0}. Make room, or remove the cause, and repeat the command: it resumes the export"
    )]
    Write(#[from] io::Error),
    /// The same, as reported by the writer of an archive or a table.
    #[error("cannot write the export: {0:#}")]
    Format(#[from] anyhow::Error),
    /// The observer stopped the export.
    #[error("the export was stopped. Repeat the command to resume it")]
    Stopped,
}
