#![doc = include_str!("../README.md")]

mod body;
mod config;
mod fetcher;
mod incoming;
mod job;
mod large;
mod manner;
mod metrics;
mod modified;
mod package;
mod package_label;
mod page;
mod patch;
mod patch_room;
mod progress;
mod range_permits;
mod resource;
mod result_room;
mod serve;
mod sink;

pub use config::FetcherConfig;
pub use fetcher::Fetcher;
pub use metrics::FetcherMetrics;
pub use serve::{Config, Settings, serve};
