#![doc = include_str!("../README.md")]

mod assignment;
mod config;
mod context;
mod due;
mod estimates;
mod hints;
mod meter;
mod metrics;
mod notifier;
mod origin_permits;
mod pending_actions;
mod run;
mod run_options;
mod run_retry;
mod serve;
mod source_status;
mod source_task;
#[cfg(test)]
mod tests;
mod views;

pub use config::{Config, Settings};
pub use serve::serve;
