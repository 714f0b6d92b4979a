//! Errors of a job, and what they decide about it.

use bus::BusError;
use model::ProblemReason;
use packages::PackageError;
use resourcesync::ReadError;
use store::StoreError;

/// Why a job did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// The store: missing bytes give an outcome; all other errors are retried.
    #[error(transparent)]
    Store(StoreError),
    /// The bus: an outcome was not delivered.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The package cannot be read: this gives an outcome.
    #[error(transparent)]
    Package(PackageError),
    /// Its manifest cannot be read: this gives an outcome.
    #[error(transparent)]
    Manifest(#[from] ReadError),
    /// It must not be processed, for another reason: this gives an outcome.
    #[error("{message}")]
    Refused {
        /// The problem reason.
        reason: ProblemReason,
        /// Explanation.
        message: String,
    },
    /// The service stops: another unpacker continues the job.
    #[error("the unpacker is to stop; another one goes on with the package")]
    Stopping,
    /// No retry can process the job.
    #[error("{0}")]
    Poison(String),
    /// A bug or shutdown of this process: to be retried.
    #[error("{0}")]
    Ours(String),
}

impl From<StoreError> for UnpackError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<PackageError> for UnpackError {
    fn from(error: PackageError) -> Self {
        match error {
            PackageError::Read { offset, length, source } => match source.downcast::<StoreError>() {
                Ok(error) => Self::Store(error),
                Err(source) => Self::Ours(PackageError::Read { offset, length, source }.to_string()),
            },
            error => Self::Package(error),
        }
    }
}
