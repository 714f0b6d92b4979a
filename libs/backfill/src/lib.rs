#![doc = include_str!("../README.md")]

mod archives;
mod bounds;
mod candidate;
mod dumps;
mod error;
mod fetch;
mod keep;
mod member;
mod receive;
mod report;
mod resource;
mod run;
mod timemap;

pub use bounds::Bounds;
pub use error::BackfillError;
pub use report::Remark;
pub use run::{Checkpoint, Options, Parts, run};
