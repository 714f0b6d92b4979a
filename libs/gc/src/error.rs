//! Why garbage could not be collected.

use catalog::CatalogError;
use model::SourceId;
use store::StoreError;

/// Why garbage could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// No catalog lies in the store.
    #[error("no catalog lies in {root}, so nobody knows what is needed there: nothing was removed")]
    NoCatalog {
        /// The store.
        root: String,
    },
    /// A catalog is not there or cannot be read. What it points to is not known, so everything stays.
    #[error(
        "the catalog of {source_id} cannot be read, so nobody knows what it needs: nothing was removed. {error}"
    )]
    Unreadable {
        /// The Source.
        source_id: SourceId,
        /// What is wrong with it.
        error: CatalogError,
    },
    /// A catalog could not be written.
    #[error(
        "the catalog of {source_id} could not be written, and nothing was removed; run the same command again. {error}"
    )]
    NotOwner {
        /// The Source.
        source_id: SourceId,
        /// What is wrong.
        error: CatalogError,
    },
    /// The store failed. What was removed was garbage.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was read of the catalogs could not be put away.
    #[error("cannot write to the system's temporary directory: {0}; make room there, or set TMPDIR")]
    Spill(#[from] std::io::Error),
}
