#![doc = include_str!("../README.md")]

mod body;
mod config;
mod job;
mod metrics;
mod modified;
mod package;
mod page;
mod resource;
mod serve;
mod sink;

pub use config::FetcherConfig;
pub use job::Fetcher;
pub use metrics::FetcherMetrics;
pub use serve::{Config, Settings, serve};
