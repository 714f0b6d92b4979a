#![doc = include_str!("../README.md")]

mod harvest;
mod stages;

pub use harvest::{PipelineError, harvest, mend};
pub use stages::Pipeline;
