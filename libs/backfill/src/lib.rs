#![doc = include_str!("../README.md")]

mod archives;
mod candidate;
mod error;
mod fetch;
mod keep;
mod receive;
mod report;
mod resource;
mod run;
mod timemap;

pub use error::BackfillError;
pub use report::{Remark, Report};
pub use run::{Options, Parts, run};
