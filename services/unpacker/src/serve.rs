//! The unpacker service, in a fleet with a message bus and a store.

use std::sync::Arc;

use bus::{Filter, Message};
use fleet::{Connections, NatsConfig, StoreConfig};
use futures::future::BoxFuture;
use model::SystemClock;
use packages::{Blocks, Limits};
use serde::Deserialize;
use service::{Context, FrameConfig, ServiceConfig};
use store::PackLimits;

use crate::entries::ENTRY_BYTES;
use crate::source::{AHEAD, BLOCK};
use crate::{Unpacker, UnpackerConfig, UnpackerMetrics};

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
    /// Settings of the unpacker itself.
    #[serde(default)]
    pub unpacker: Settings,
}

/// Settings of the unpacker itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Concurrent slices. Each takes the memory of two messages at most, and 24 MiB of read-ahead.
    pub max_concurrent_jobs: usize,
    /// Packages opened concurrently in addition, including those unpacked from their beginning. Each may take the
    /// memory that the limits of the jobs allow.
    pub max_open_packages: usize,
    /// Settings of the jobs.
    pub jobs: UnpackerConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_concurrent_jobs: 8, max_open_packages: 2, jobs: UnpackerConfig::default() }
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

/// Processes packages until the service stops; then finishes the jobs in progress.
///
/// # Errors
/// When the configuration is wrong.
pub fn serve(context: Context<Config>) -> BoxFuture<'static, anyhow::Result<()>> {
    fleet::serve(work(context))
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let Config { nats, store, unpacker, .. } = &context.config;
    let slices = unpacker.max_concurrent_jobs.max(1);
    // The received job and the outcome to send; blocks of small members, one member across two of them, and a large
    // one that is read.
    let blocks = (Blocks::<()>::HELD + 1) * BLOCK;
    let job_bytes = 2 * bus::MAX_PAYLOAD + blocks + AHEAD.reads * AHEAD.chunk;
    context.metrics.bound_memory("unpacker-jobs", (slices * job_bytes) as u64);
    context.metrics.bound_memory("unpacker-packages", opened_bytes(unpacker));
    let joined = fleet::join(&context, nats, store).await?;
    work_queues(&context, joined, unpacker).await
}

/// Processes both queues, as a member of a fleet: a package that takes long to open does not delay slices.
///
/// # Errors
/// When the bus refuses a consumer.
pub async fn work_queues<C: Sync>(
    context: &Context<C>,
    joined: Connections,
    settings: &Settings,
) -> anyhow::Result<()> {
    let Connections { bus, store } = joined;
    let Settings { max_concurrent_jobs, max_open_packages, jobs } = settings.clone();
    let counted = UnpackerMetrics::register(&context.metrics);
    let unpacker = Unpacker::new(store, Arc::clone(&bus), Arc::new(SystemClock), jobs)
        .counted(counted)
        .stopped_by(context.stop.clone());
    let work = move |message: Message| {
        let unpacker = unpacker.clone();
        async move { unpacker.work(message.payload, message.attempt).await }
    };
    let opening =
        fleet::work_queue(context, Arc::clone(&bus), Filter::Open, max_open_packages.max(1), work.clone());
    let slices = fleet::work_queue(context, bus, Filter::Unpack, max_concurrent_jobs.max(1), work);
    tokio::try_join!(opening, slices).map(drop)
}

/// Maximum memory of packages that are being opened: entries and members of all, plus the directory of a ZIP, or the
/// decoder and the open pack of a tar.
fn opened_bytes(Settings { max_open_packages, jobs, .. }: &Settings) -> u64 {
    // For each member its record. The bytes of its record in the directory are a bound for its name.
    let Limits { members, directory_bytes, decoder_bytes, .. } = jobs.limits();
    let zip = directory_bytes.saturating_add(members.saturating_mul(32));
    let tar = decoder_bytes.saturating_add((PackLimits::default().bytes + jobs.pack_threshold_bytes) as u64);
    let one = members.saturating_mul(ENTRY_BYTES).saturating_add(zip.max(tar));
    one.saturating_mul((*max_open_packages).max(1) as u64)
}

#[cfg(test)]
mod tests {
    use secrets::Vars;
    use service::config;

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
