//! Errors of the control store.

use std::error::Error as StdError;
use std::fmt;

use model::{SourceId, WireError};

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
    #[error("{what} changed since it was read; fetch and resubmit")]
    Conflict {
        /// What was to be written.
        what: String,
    },
    /// There is no such value.
    #[error("{what} does not exist in the control store; it may have been removed")]
    Absent {
        /// What was requested.
        what: String,
    },
    /// The value exists already.
    #[error("{what} exists already")]
    Exists {
        /// What was to be created.
        what: String,
    },
    /// Another Source bears the name.
    #[error("another Source is named {name}; choose another name, or rename that Source first")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The spec of a Source is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidSource),
    /// The run is not in a state that allows it.
    #[error("{0}")]
    Refused(String),
    /// The subscription is not in a state that allows it, or the hub was not asked for it.
    #[error("{0}")]
    NotRequested(String),
    /// This version cannot read the value. The value stays unchanged.
    #[error(
        "{key} in the bucket {bucket} cannot be read: {source}. A newer version may have written it: \
         upgrade this service"
    )]
    Unreadable {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
        /// What is wrong with the value.
        source: WireError,
    },
}

/// The spec of a Source is invalid. The error lists all reasons, so that an operator can fix them at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSource {
    pub(crate) source: SourceId,
    pub(crate) reasons: Vec<(&'static str, String)>,
}

impl InvalidSource {
    /// The invalid fields, each with its reason.
    pub fn reasons(&self) -> &[(&'static str, String)] {
        &self.reasons
    }
}

impl fmt::Display for InvalidSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the source {} cannot be wanted like that", self.source)?;
        for (index, (field, why)) in self.reasons.iter().enumerate() {
            write!(f, "{} {field}: {why}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl StdError for InvalidSource {}

/// The result of a write; None if another client has changed the value meanwhile.
///
/// # Errors
/// Any other error of the write.
pub(crate) fn unless_changed<T>(written: Result<T, ControlError>) -> Result<Option<T>, ControlError> {
    match written {
        Ok(done) => Ok(Some(done)),
        Err(ControlError::Conflict { .. }) => Ok(None),
        Err(error) => Err(error),
    }
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
