#![doc = include_str!("../README.md")]

mod failure;
mod judge;
mod metrics;
mod pack_lengths;
pub mod scrub;
mod serve;

pub use judge::Verifier;
pub use metrics::VerifierMetrics;
pub use serve::{Config, Settings, serve};
