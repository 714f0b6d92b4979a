#![doc = include_str!("../README.md")]
// A test writes all fields of a Source in one `json!`.
#![cfg_attr(test, recursion_limit = "256")]

mod access;
mod api;
mod api_error;
mod auth;
mod batch;
mod body;
mod client;
mod config;
mod connections;
mod console;
mod content;
mod events;
mod extract;
mod host;
mod inbox;
mod inbox_urls;
mod link_filter;
mod memento;
mod metrics;
mod pagination;
mod plans;
mod problem_actions;
mod problems;
mod push;
mod rate_limit;
mod report;
mod resources;
mod runs;
mod serve;
mod sources;
mod state;
mod subscriptions;
mod tokens;
mod verdicts;
mod works;
mod wrong_tokens;

pub use self::api::openapi;
pub use config::{Config, InboxSettings, Settings};
pub use metrics::GatewayMetrics;
pub use serve::serve;
