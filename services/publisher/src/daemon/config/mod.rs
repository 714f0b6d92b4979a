//! Configuration of the daemon: what its file says, whether that makes sense, and what the server makes of it.

mod check;
mod memory;
mod own_hub;
mod server;
mod settings;
#[cfg(test)]
mod tests;

use fleet::{NatsConfig, StoreConfig};
use serde::Deserialize;
use service::{FrameConfig, ServiceConfig};

pub use own_hub::OwnHubSettings;
pub use settings::DaemonSettings;

/// The configuration of the daemon.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub service: FrameConfig,
    /// The control store.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store. The publisher reads it, and writes publications.
    pub store: StoreConfig,
    /// Settings of the publisher itself.
    pub publisher: DaemonSettings,
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}
