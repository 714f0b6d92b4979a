//! The delivery settings of a consumer.

use std::time::Duration;

use crate::Filter;

/// The delivery settings of a filter's consumer, for all its workers together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerSpec {
    filter: Filter,
    max_in_flight: usize,
    ack_wait: Duration,
    max_deliver: u32,
}

impl ConsumerSpec {
    /// A consumer of `filter` with at most `max_in_flight` messages in flight, over all workers of the fleet. A worker
    /// that is silent about a message for `ack_wait` counts as dead, and the message is redelivered. After
    /// `max_deliver` deliveries it becomes a dead letter. Numbers below one count as one, and waits below a millisecond
    /// as one millisecond.
    pub fn new(filter: Filter, max_in_flight: usize, ack_wait: Duration, max_deliver: u32) -> Self {
        Self {
            filter,
            max_in_flight: max_in_flight.max(1),
            ack_wait: ack_wait.max(Duration::from_millis(1)),
            max_deliver: max_deliver.max(1),
        }
    }

    /// Its filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The most messages in flight, over all workers. A message in the delay of a `nak` counts too.
    pub fn max_in_flight(&self) -> usize {
        self.max_in_flight
    }

    /// The silence after which a worker counts as dead.
    pub fn ack_wait(&self) -> Duration {
        self.ack_wait
    }

    /// How often a message is delivered before it is given up. A delivery that ends with a `nak` counts like any other.
    pub fn max_deliver(&self) -> u32 {
        self.max_deliver
    }
}
