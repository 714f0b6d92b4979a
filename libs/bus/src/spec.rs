//! How the messages of a filter are handed out.

use std::time::Duration;

use crate::Filter;

/// How the messages of a filter are handed out, over all its workers together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerSpec {
    filter: Filter,
    max_in_flight: usize,
    ack_wait: Duration,
    max_deliver: u32,
}

impl ConsumerSpec {
    /// A consumer of `filter` with at most `max_in_flight` messages out at a time, over all workers of the fleet. A worker
    /// that is silent about a message for `ack_wait` counts as dead, and the message is handed out again, `max_deliver`
    /// times in all; then it becomes a dead letter. Numbers below one, and waits below a millisecond, are taken as one.
    pub fn new(filter: Filter, max_in_flight: usize, ack_wait: Duration, max_deliver: u32) -> Self {
        Self {
            filter,
            max_in_flight: max_in_flight.max(1),
            ack_wait: ack_wait.max(Duration::from_millis(1)),
            max_deliver: max_deliver.max(1),
        }
    }

    /// What it takes.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Messages that may be out and not acknowledged, over all workers. One that rests after a `nak` counts too.
    pub fn max_in_flight(&self) -> usize {
        self.max_in_flight
    }

    /// The silence after which a worker counts as dead.
    pub fn ack_wait(&self) -> Duration {
        self.ack_wait
    }

    /// How often a message is handed out before it is given up. A `nak` counts like any other end of a delivery.
    pub fn max_deliver(&self) -> u32 {
        self.max_deliver
    }
}
