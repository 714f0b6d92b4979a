#![doc = include_str!("../README.md")]

pub mod admin;
pub mod config;
pub mod frame;
mod memory;
mod readiness;
mod secret;
mod status;
pub mod telemetry;

pub use admin::Metrics;
pub use config::{ConfigError, FrameConfig, Vars};
pub use frame::{About, Context, ServiceConfig};
pub use readiness::{Latch, Readiness, Waiting};
pub use secret::{Secret, SecretRef};
pub use status::status_class;
