//! Errors of the bus.

use std::error::Error as StdError;

use crate::{Filter, Queue};

/// Why the bus, or a worker on it, could not go on.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The consumer was never opened, or was closed since. Open it before pulling from it.
    #[error("no consumer is open for {filter}: open it before pulling from it")]
    NotOpen {
        /// The filter of the consumer.
        filter: Filter,
    },
    /// The message is larger than any server accepts. Send a smaller one; a retry does not help.
    #[error("a message of {bytes} bytes for {queue} is over the limit of {limit}: send less in one message")]
    TooLarge {
        /// The target queue.
        queue: Queue,
        /// Its length.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The server is unreachable or refused. Retry later.
    #[error("the message bus cannot {action}: {source}. Check that its servers are up and reachable")]
    Unavailable {
        /// The action that failed.
        action: String,
        /// The error of the client.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The server has no storage left. Once the operator has freed some, the same call succeeds.
    #[error("the message bus cannot {action}: {why}")]
    NoRoom {
        /// The action that failed.
        action: String,
        /// The message of the server, and what to do.
        why: String,
    },
    /// The server, or its client, refuses for good. An operator must change something.
    #[error("the message bus cannot {action}: {why}; trying again will not help")]
    Refused {
        /// The action that failed.
        action: String,
        /// The reason, and what to do.
        why: String,
    },
    /// A handler stopped its worker.
    #[error("the worker of {filter} stopped: {why}")]
    Halted {
        /// The filter that the worker was pulling from.
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
