//! Exit status of commands, for scripts.

use std::fmt::Display;
use std::process::ExitCode;

use store::StoreError;

use crate::client_error::{ClientError, Kind};

/// The exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// In sync; or the command succeeded.
    Good,
    /// Finished with open problems; or the document was refused or truncated.
    Problems,
    /// Wrong usage or configuration.
    Usage,
    /// The run failed: the Source is unreachable, nothing was found, or the store failed.
    Failed,
}

/// An error with its exit status.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

/// The result of a command.
pub(crate) type CommandResult = Result<Exit, Failed>;

impl Exit {
    /// The exit status of a failed request to a gateway.
    pub(crate) fn of(error: &ClientError) -> Self {
        match error.kind {
            Kind::Absent | Kind::Invalid | Kind::Denied => Self::Usage,
            Kind::Conflict | Kind::Changed | Kind::Unavailable | Kind::Broken => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Good => 0,
            Exit::Problems => 1,
            Exit::Usage => 2,
            Exit::Failed => 3,
        })
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        let error = error.into();
        let is_config = matches!(error.downcast_ref(), Some(StoreError::Config(_)));
        let exit = match error.downcast_ref::<ClientError>() {
            Some(refused) => Exit::of(refused),
            None if is_config => Exit::Usage,
            None => Exit::Failed,
        };
        Self { exit, error }
    }
}

/// Wrong usage: the message says what to write instead.
pub(crate) fn usage(message: impl Display) -> Failed {
    Failed { exit: Exit::Usage, error: anyhow::anyhow!("{message}") }
}

/// The command finished, but what was asked for is a problem.
pub(crate) fn problem(message: impl Display) -> Failed {
    Failed { exit: Exit::Problems, error: anyhow::anyhow!("{message}") }
}
