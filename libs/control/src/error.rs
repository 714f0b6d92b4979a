//! Errors of the control store.

use std::error::Error as StdError;

use model::WireError;

use crate::runs::InvalidTransition;
use crate::sources::InvalidSource;
use crate::subscriptions::NotRequested;

/// Why a value in the control store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The configuration is invalid.
    #[error("the configuration of the control store is wrong: {0}")]
    Config(String),
    /// The server is unreachable or refused. Retry later.
    #[error("the control store cannot {action}: {source}; is NATS up, reachable, and JetStream enabled?")]
    Unavailable {
        /// The action that failed.
        action: String,
        /// The error of the client.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Another process wrote meanwhile. Read again, and decide again.
    #[error("{what} was changed by somebody else meanwhile: read it again, and decide again")]
    Conflict {
        /// What was to be written.
        what: String,
    },
    /// There is no such value.
    #[error("there is no {what}")]
    Absent {
        /// What was requested.
        what: String,
    },
    /// The value exists already.
    #[error("there is a {what} already")]
    Exists {
        /// What was to be created.
        what: String,
    },
    /// The spec of a Source is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidSource),
    /// The run is not in a state that allows it.
    #[error(transparent)]
    Refused(#[from] InvalidTransition),
    /// The subscription is not in a state that allows it, or the hub was not asked for it.
    #[error(transparent)]
    NotRequested(#[from] NotRequested),
    /// This version cannot read the value. The value stays unchanged.
    #[error("{key} in the bucket {bucket} cannot be read: {source}")]
    Unreadable {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
        /// What is wrong with the value.
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
