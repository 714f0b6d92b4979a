#![doc = include_str!("../README.md")]

mod metrics;
mod package;
mod serve;

pub use metrics::UnpackerMetrics;
pub use package::Unpacker;
pub use serve::{Config, Settings, serve};
