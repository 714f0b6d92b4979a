#![doc = include_str!("../README.md")]

pub mod admin;
pub mod config;
pub mod frame;
mod memory;
mod readiness;
mod status;
pub mod telemetry;

pub use admin::Metrics;
pub use config::{ConfigError, FrameConfig};
pub use frame::{Context, ServiceConfig, ServiceInfo};
pub use readiness::{Latch, Readiness, Waiting};
pub use status::status_class;
