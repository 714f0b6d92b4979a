#![doc = include_str!("../README.md")]

pub mod admin;
pub mod config;
pub mod frame;
mod info;
mod labelled;
mod memory;
mod readiness;
mod status;
pub mod telemetry;

pub use admin::Metrics;
pub use config::{ConfigError, FrameConfig};
pub use frame::{Context, ServiceConfig};
pub use info::ServiceInfo;
pub use labelled::{Active, Labelled};
pub use readiness::{Latch, Readiness, Waiting};
pub use status::status_class;
