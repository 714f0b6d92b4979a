//! Why garbage could not be collected.

use catalog::CatalogError;
use model::SourceId;
use store::StoreError;

/// Why garbage could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// The store has no catalog.
    #[error(
        "{root} has no catalog, so gc cannot tell which objects are in use. Nothing was deleted; check --into"
    )]
    NoCatalog {
        /// The store.
        root: String,
    },
    /// A catalog is missing or cannot be read. Its references are unknown, so nothing is removed.
    #[error(
        "the catalog of {source_id} cannot be read, so gc cannot tell what it uses. Nothing was removed: {error}"
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
    /// The store failed. Whatever was removed before was garbage.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The temporary files with the digests of the catalogs failed.
    #[error("cannot write to the system's temporary directory: {0}; make room there, or set TMPDIR")]
    Spill(#[from] std::io::Error),
}
