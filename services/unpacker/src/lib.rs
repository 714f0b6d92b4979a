#![doc = include_str!("../README.md")]

mod collect;
mod config;
mod entries;
mod error;
mod failure;
mod fill;
mod index;
mod judge;
mod locate;
mod metrics;
mod open;
mod paths;
mod serve;
mod slice;
mod source;
mod stream;
mod unlisted;
mod unpacker;

pub use config::UnpackerConfig;
pub use metrics::UnpackerMetrics;
pub use serve::{Config, Settings, serve, work_queues};
pub use unpacker::Unpacker;
