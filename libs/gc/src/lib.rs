#![doc = include_str!("../README.md")]

mod collect;
mod error;
mod mark;
mod marks;
mod report;
mod rewrite;
mod spill;
mod sweep;
mod times;
mod tombstones;

pub use collect::{Options, collect};
pub use error::GcError;
pub use report::{Counted, HeldBack, Report, Rewritten, Tombstones};
