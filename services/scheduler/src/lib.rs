#![doc = include_str!("../README.md")]

mod admission;
mod agenda;
mod config;
mod context;
mod due;
mod estimates;
mod hints;
mod meter;
mod metrics;
mod notifier;
mod origin_permits;
mod origin_rates;
mod pending_actions;
mod places;
mod poll_turns;
mod probe;
mod run;
mod run_options;
mod run_retry;
mod serve;
mod source_groups;
mod source_line;
mod source_status;
mod supervisor;
#[cfg(test)]
mod tests;
mod views;

pub use config::{Config, Settings};
pub use serve::serve;
