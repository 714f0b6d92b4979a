//! What can go wrong on the bus.

use std::error::Error as StdError;

use crate::{Filter, Queue};

/// Why the bus, or a worker on it, could not go on.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// Nobody opened the consumer, or it was closed since: open it before pulling from it.
    #[error("no consumer is open for {filter}: open it before pulling from it")]
    NotOpen {
        /// What was asked for.
        filter: Filter,
    },
    /// The message is larger than any server accepts: send a smaller one, no retry will help.
    #[error("a message of {bytes} bytes for {queue} is over the limit of {limit}: send less in one message")]
    TooLarge {
        /// Where it was to go.
        queue: Queue,
        /// Its length.
        bytes: usize,
        /// The longest that is accepted, in bytes.
        limit: usize,
    },
    /// The server cannot be reached or refused: try again later.
    #[error("the message bus cannot {action}: {source}; is the server up and reachable?")]
    Unavailable {
        /// What was tried.
        action: String,
        /// What the client says.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The server has no storage left for it: somebody has to make room, and then the same call succeeds.
    #[error("the message bus cannot {action}: {why}")]
    NoRoom {
        /// What was tried.
        action: String,
        /// What the server says, and what to do.
        why: String,
    },
    /// The server, or its client, refuses for good: a person has to change something.
    #[error("the message bus cannot {action}: {why}; trying again will not help")]
    Refused {
        /// What was tried.
        action: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A handler asked for its worker to stop.
    #[error("the worker of {filter} stopped: {why}")]
    Halted {
        /// What it was pulling.
        filter: Filter,
        /// The handler's reason.
        why: String,
    },
}

impl BusError {
    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NoRoom { .. })
    }
}
