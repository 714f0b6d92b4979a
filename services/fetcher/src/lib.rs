#![doc = include_str!("../README.md")]

mod body;
mod config;
mod job;
mod modified;
mod resource;
mod sink;

pub use config::FetcherConfig;
pub use job::Fetcher;
