#![doc = include_str!("../README.md")]

mod api;
mod ask;
mod body;
mod catalogs;
mod config;
mod connections;
mod console;
mod content;
mod door;
mod events;
mod inbox;
mod judged;
mod metrics;
mod page;
mod plans;
mod problems;
mod push;
mod range;
mod rate;
mod refusal;
mod report;
mod resources;
mod runs;
mod serve;
mod sources;
mod state;
mod subscriptions;
mod tokens;
mod words;

pub use self::api::openapi;
pub use config::{Config, InboxSettings, Settings};
pub use metrics::GatewayMetrics;
pub use serve::serve;
