#![doc = include_str!("../README.md")]

mod backoff;
mod bus;
mod dead;
mod delivery;
mod error;
pub mod jetstream;
mod memory;
mod message_id;
mod payload;
mod permit;
mod queue;
mod send;
mod spec;
pub mod worker;

pub use bus::{Bus, Depth, OriginQueues, Published};
pub use dead::{DeadLetter, DeadPayload};
pub use delivery::{Delivery, Message, Receipt};
pub use error::BusError;
pub use jetstream::{JetStreamBus, JetStreamConfig};
pub use memory::MemoryBus;
pub use message_id::MessageId;
pub use payload::{MAX_PAYLOAD, OneOf, Payload};
pub use permit::OriginPermit;
pub use queue::{Filter, Queue};
pub use send::{send, send_part};
pub use spec::ConsumerSpec;
pub use worker::HandlerResult;

#[cfg(test)]
mod conformance_tests;
