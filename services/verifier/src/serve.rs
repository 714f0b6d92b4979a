//! The verifier service, in a fleet with a message bus and a store.

use std::sync::Arc;

use bus::{Filter, Message};
use fleet::{Connections, NatsConfig, StoreConfig};
use futures::future::BoxFuture;
use serde::Deserialize;
use service::{Context, FrameConfig, ServiceConfig};

use crate::{Verifier, VerifierMetrics};

/// The daemon's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub service: FrameConfig,
    /// The message bus.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store.
    pub store: StoreConfig,
    /// Settings of the verifier itself.
    #[serde(default)]
    pub verifier: Settings,
}

/// Settings of the verifier itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Concurrent jobs. Each takes the memory of two messages at most.
    pub max_concurrent_jobs: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_concurrent_jobs: 16 }
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

/// Judges fetched bitstreams until the service stops; then finishes the jobs in progress.
///
/// # Errors
/// When the configuration is wrong.
pub fn serve(context: Context<Config>) -> BoxFuture<'static, anyhow::Result<()>> {
    fleet::serve(work(context))
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let Config { nats, store, verifier, .. } = &context.config;
    let max_concurrent_jobs = verifier.max_concurrent_jobs.max(1);
    // The received job, and the outcomes to send.
    context.metrics.bound_memory("verifier-jobs", (max_concurrent_jobs * 2 * bus::MAX_PAYLOAD) as u64);
    let counted = VerifierMetrics::register(&context.metrics);

    let Connections { bus, store } = fleet::join(&context, nats, store).await?;
    let verifier = Verifier::new(store, Arc::clone(&bus)).counted(counted);
    let work = move |message: Message| {
        let verifier = verifier.clone();
        async move { verifier.work(message.payload).await }
    };
    fleet::work_queue(&context, bus, Filter::Verify, max_concurrent_jobs, work).await
}

#[cfg(test)]
mod tests {
    use secrets::Vars;
    use service::config;

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
