//! What can go wrong with what the fleet shares.

use std::error::Error as StdError;

use model::WireError;

use crate::runs::StepRefused;
use crate::sources::InvalidSource;
use crate::subscriptions::NotAsked;

/// Why something shared could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The configuration cannot be right.
    #[error("the configuration of the control store is wrong: {0}")]
    Config(String),
    /// The server cannot be reached or refused: try again later.
    #[error("the control store cannot {action}: {source}; is NATS up, reachable, and JetStream enabled?")]
    Unavailable {
        /// What was tried.
        action: String,
        /// What the client says.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Somebody else wrote meanwhile: read again, and decide again.
    #[error("{what} was changed by somebody else meanwhile: read it again, and decide again")]
    Conflict {
        /// What was to be written.
        what: String,
    },
    /// There is none.
    #[error("there is no {what}")]
    Absent {
        /// What was asked for.
        what: String,
    },
    /// There is one already.
    #[error("there is a {what} already")]
    Exists {
        /// What was to be created.
        what: String,
    },
    /// What is wanted of a Source makes no sense.
    #[error(transparent)]
    Invalid(#[from] InvalidSource),
    /// The run is not in a state that allows it.
    #[error(transparent)]
    Refused(#[from] StepRefused),
    /// The subscription is not in a state that allows it, or nothing of the kind was asked for.
    #[error(transparent)]
    NotAsked(#[from] NotAsked),
    /// The value is not one that this version reads; it is left as it is.
    #[error("{key} in the bucket {bucket} cannot be read: {source}")]
    Unreadable {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        source: WireError,
    },
}

impl ControlError {
    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Conflict { .. })
    }

    pub(crate) fn unavailable<E: Into<Box<dyn StdError + Send + Sync>>>(
        action: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::Unavailable { action, source: source.into() }
    }
}
