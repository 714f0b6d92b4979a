#![doc = include_str!("../README.md")]

mod harvest;
mod stages;

pub use harvest::{PipelineError, harvest};
pub use stages::Pipeline;
