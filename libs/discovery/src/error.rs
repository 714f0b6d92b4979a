//! Errors of discovery.

use catalog::CatalogError;
use url::Url;
use web::WebError;

/// Well-known path of a host's Source Description (RS-20).
pub(crate) const WELL_KNOWN: &str = "/.well-known/resourcesync";

/// Why discovery found nothing.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// The URL did not answer.
    #[error("{0}")]
    Unreachable(WebError),
    /// It answered, but nothing there leads to resources.
    #[error(
        "nothing to harvest at {url}: {why}. Give the URL of a site with {WELL_KNOWN}, of a Source Description, of a \
         Capability List, or of a Resource List or Change List itself; of an OAI-PMH repository give the base URL"
    )]
    Nothing {
        /// The entry URL.
        url: Box<Url>,
        /// What was found instead.
        why: String,
        /// Whether a ResourceSync document was read on the way.
        has_documents: bool,
    },
}

/// Why a Source could not be estimated.
#[derive(Debug, thiserror::Error)]
pub enum EstimateError {
    /// Discovery found nothing.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}
