//! The tests of the fleet's shared parts, against a real NATS server.
#![allow(missing_docs)]

mod nats;
mod rate;
mod rests;
