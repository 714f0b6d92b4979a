#![doc = include_str!("../README.md")]

mod failure;
mod judge;
mod metrics;
pub mod scrub;
mod seen;
mod serve;

pub use judge::Verifier;
pub use metrics::VerifierMetrics;
pub use serve::{Config, Settings, serve};
