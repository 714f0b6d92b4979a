#![doc = include_str!("../README.md")]

mod harvest;
mod stages;

pub use harvest::{PipelineError, harvest, repair};
pub use stages::Pipeline;
