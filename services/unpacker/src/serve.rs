//! The unpacker beside others: one of a fleet that shares a message bus and a store.

use std::sync::Arc;

use bus::{Filter, Message};
use fleet::{Joined, NatsConfig, StoreConfig};
use serde::Deserialize;
use service::{Context, FrameConfig, ServiceConfig};

use crate::{Unpacker, UnpackerMetrics};

/// The daemon's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub frame: FrameConfig,
    /// The message bus.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store.
    pub store: StoreConfig,
    /// What is the unpacker's own.
    #[serde(default)]
    pub unpacker: Settings,
}

/// What is the unpacker's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Jobs worked on at a time. Each takes the memory of two messages at most.
    pub jobs_at_a_time: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { jobs_at_a_time: 16 }
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.frame
    }
}

/// Reads packages until the service is to stop; then it finishes what is in hand.
///
/// # Errors
/// When the configuration is wrong.
pub async fn serve(context: Context<Config>) -> anyhow::Result<()> {
    fleet::unless_stopped(work(context).await)
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let Config { nats, store, unpacker, .. } = &context.config;
    let jobs_at_a_time = unpacker.jobs_at_a_time.max(1);
    // The job that came, and the outcomes that go.
    context.metrics.bound_memory("unpacker-jobs", (jobs_at_a_time * 2 * bus::MAX_PAYLOAD) as u64);
    let counted = UnpackerMetrics::register(&context.metrics);

    let Joined { bus, store } = fleet::join(&context, nats, store).await?;
    let unpacker = Unpacker::new(store, Arc::clone(&bus)).counted(counted);
    let work = move |message: Message| {
        let unpacker = unpacker.clone();
        async move { unpacker.work(message.payload).await }
    };
    fleet::work_queue(&context, bus, Filter::Unpack, jobs_at_a_time, work).await
}

#[cfg(test)]
mod tests {
    use service::{Vars, config};

    use super::*;

    #[test]
    fn the_sample_configuration_is_read_and_says_what_the_defaults_say() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/unpacker.yaml");
        let vars = Vars::default().with("THRESHER_UNPACKER_CONFIG", sample);
        let config: Config = config::load("unpacker", &vars).unwrap();
        assert_eq!(config.unpacker, Settings::default());
        let misspelt = vars.with("THRESHER_UNPACKER__UNPACKER__JOBS", "{at_a_time: 3}");
        assert!(config::load::<Config>("unpacker", &misspelt).is_err());
    }
}
