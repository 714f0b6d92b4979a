//! The tests of what tests stand on.
#![allow(missing_docs)]

mod faults;
mod peers;
mod scripted;
mod servers;
mod source;
