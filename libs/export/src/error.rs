use std::io;

use catalog::CatalogError;
use store::StoreError;

/// Why an export was not made, or not to its end. What it has written so far is gone on with when the same is asked for again.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It is not to be made there, or not like this.
    #[error("{0}")]
    Refused(String),
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store cannot be read. A bitstream that is damaged or not there is no error: it is left out and told.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is exported cannot be written.
    #[error(
        "cannot write the export: {0}; make room, or mend what is said, and ask for the same again: it goes on where it stopped"
    )]
    Write(#[from] io::Error),
    /// The same, as the writer of an archive or a table says it.
    #[error("cannot write the export: {0:#}")]
    Format(anyhow::Error),
    /// Whoever watches has stopped it.
    #[error("the export was stopped; ask for the same again, and it goes on where it stopped")]
    Stopped,
}
