#![doc = include_str!("../README.md")]

mod access;
mod answers;
mod conditions;
mod documents;
mod files;
mod follow;
mod form;
mod harvest;
mod hub;
mod hub_limits;
mod metrics;
mod notify;
mod oai;
mod repositories;
mod resources;
mod routes;
mod serve;
mod set;
mod settings;
mod several;
mod shared;
mod takedowns;
mod topic;

pub use access::Tokens;
pub use hub_limits::HubLimits;
pub use metrics::PublisherMetrics;
pub use serve::{Site, serve};
pub use settings::Settings;
pub use shared::Held;
pub use takedowns::Takedowns;
