//! What keeps a job from coming to its good end, as decisions.

use bus::BusError;
use model::ProblemReason;
use packages::PackageError;
use resourcesync::ReadError;
use store::StoreError;

/// What keeps a job from coming to its good end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The store: bytes that are not there are an answer; all else is to be tried again.
    #[error(transparent)]
    Store(StoreError),
    /// The bus: what was to be said was not heard.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The package cannot be read: an answer.
    #[error(transparent)]
    Package(PackageError),
    /// Its manifest cannot be read: an answer.
    #[error(transparent)]
    Manifest(#[from] ReadError),
    /// It is not to be worked on, for another reason: an answer.
    #[error("{message}")]
    Refused {
        /// The class of it.
        reason: ProblemReason,
        /// In words.
        message: String,
    },
    /// Whoever runs this is to stop: another one goes on.
    #[error("the unpacker is to stop; another one goes on with the package")]
    Stopping,
    /// The job makes no sense, now or later.
    #[error("{0}")]
    Poison(String),
    /// A defect or a shutdown of ours: to be tried again.
    #[error("{0}")]
    Ours(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<PackageError> for Trouble {
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
