//! The verifier beside others: one of a fleet that shares a message bus and a store.

use std::sync::Arc;
use std::time::Duration;

use bus::{ConsumerSpec, Filter};
use fleet::{NatsConfig, StoreConfig};
use serde::Deserialize;
use service::{Context, FrameConfig, ServiceConfig};
use tokio::sync::Semaphore;

use crate::{Verifier, VerifierMetrics};

/// How long a job may be silent before it counts as lost. A worker gives three signs of life in this time.
const ACK_WAIT: Duration = Duration::from_secs(15);
/// Deliveries of one message before it is given up as poison.
const MAX_DELIVER: u32 = 20;
/// Verify jobs that may be out over the whole fleet.
const MAX_IN_FLIGHT: usize = 1024;

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
    /// What is the verifier's own.
    #[serde(default)]
    pub verifier: Settings,
}

/// What is the verifier's own.
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

/// Judges what is fetched until the service is to stop; then it finishes what is in hand.
///
/// # Errors
/// When the configuration is wrong.
pub async fn serve(context: Context<Config>) -> anyhow::Result<()> {
    fleet::unless_stopped(work(context).await)
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let Context { config, vars, readiness, metrics, stop } = context;
    let jobs_at_a_time = config.verifier.jobs_at_a_time.max(1);
    // The job that came, and the outcomes that go.
    metrics.bound_memory("verifier-jobs", (jobs_at_a_time * 2 * bus::MAX_PAYLOAD) as u64);
    let counted = VerifierMetrics::register(&metrics);

    let bus = fleet::open_bus(&config.nats, &vars, &readiness, &stop).await?;
    let store = fleet::open_store(&config.store, &vars, &readiness, &stop).await?;
    tokio::spawn(fleet::watch_store(store.clone(), readiness.clone(), stop.clone()));
    let spec = ConsumerSpec::new(Filter::Verify, MAX_IN_FLIGHT, ACK_WAIT, MAX_DELIVER);
    fleet::open_consumer(&bus, &spec, &readiness, &stop).await?;

    let verifier = Verifier::new(store, Arc::clone(&bus)).counted(counted);
    let worker = bus::worker::Worker::new(bus, move |message: bus::Message| {
        let verifier = verifier.clone();
        async move { verifier.work(message.payload).await }
    });
    worker.within(Arc::new(Semaphore::new(jobs_at_a_time))).run(spec, stop).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use service::{Vars, config};

    use super::*;

    #[test]
    fn the_sample_configuration_is_read_and_says_what_the_defaults_say() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/verifier.yaml");
        let vars = Vars::default().with("THRESHER_VERIFIER_CONFIG", sample);
        let config: Config = config::load("verifier", &vars).unwrap();
        assert_eq!(config.verifier, Settings::default());
        let misspelt = vars.with("THRESHER_VERIFIER__VERIFIER__JOBS", "{at_a_time: 3}");
        assert!(config::load::<Config>("verifier", &misspelt).is_err());
    }
}
