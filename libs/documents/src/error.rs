//! Why a document was not read to its end.

use model::ProblemReason;
use packages::PackageError;
use planning::RunLimits;
use resourcesync::ReadError;
use web::WebError;

/// Why a document was not read to the end.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The document is invalid.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The connection failed.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The package that contains it is invalid.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The server answered "not modified" to an unconditional request.
    #[error("the server answered 304 Not Modified to a request without conditions; it sent no document")]
    NothingSent,
    /// The parser ended without a result: a bug of Thresher, not of the document.
    #[error("reading stopped without a result; this is a defect in the reader, please report the document")]
    Stopped,
}

impl DocumentError {
    /// What happened. A limit of the run is named, with the option that raises it.
    pub fn message(&self, limits: &RunLimits) -> String {
        let met = match self {
            Self::Read(error) => limits.met_by(error),
            _ => None,
        };
        met.map_or_else(|| self.to_string(), |met| met.to_string())
    }

    /// The problem reason for it.
    pub fn reason(&self) -> ProblemReason {
        match self {
            Self::Read(ReadError::Truncated { .. }) => ProblemReason::Truncated,
            Self::Read(ReadError::Html { .. } | ReadError::NotXml { .. } | ReadError::UnknownRoot { .. }) => {
                ProblemReason::WrongKind
            }
            Self::Web(error) => error.reason(),
            Self::Read(_) | Self::Package(_) | Self::NothingSent | Self::Stopped => ProblemReason::Malformed,
        }
    }
}
