//! The fetcher service, in a fleet with a message bus and a store.

use std::sync::Arc;
use std::time::Duration;

use bus::worker::{OriginShares, Shares, Worker};
use control::{MemberId, Role};
use fleet::{Connections, Credentials, HttpConfig, NatsConfig, StoreConfig};
use futures::future::BoxFuture;
use model::{Clock as _, SystemClock};
use serde::Deserialize;
use service::{Context, FrameConfig, ServiceConfig};
use store::PackLimits;
use tokio::sync::Semaphore;
use web::{Client, WebConfig};

use crate::{Fetcher, FetcherConfig, FetcherMetrics, patch_room};

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
    /// HTTP settings for requests to Sources.
    #[serde(default)]
    pub http: HttpConfig,
    /// Settings of the fetcher itself.
    #[serde(default)]
    pub fetcher: Settings,
}

/// Settings of the fetcher itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Concurrent jobs, over all origins. Each takes the memory of one pack at most.
    pub max_concurrent_jobs: usize,
    /// Concurrent jobs of one Source; none = half of all. So slow Sources leave capacity to the others.
    pub max_jobs_per_source: Option<usize>,
    /// Concurrent jobs of slow origins; none = half of all. Jobs of origins that are not known yet may take half of the
    /// rest too.
    pub max_jobs_of_slow_origins: Option<usize>,
    /// Seconds of a request, in the mean or right now, from which its origin counts as slow.
    pub slow_request_seconds: u64,
    /// HTTP/2 flow-control window in bytes, 65,535 at least: how much a server may send before it is acknowledged.
    /// Each job takes this memory in addition. A distant server sends no more than this per round trip.
    pub http2_window_bytes: u32,
    /// Settings of the jobs.
    pub jobs: FetcherConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrent_jobs: 64,
            max_jobs_per_source: None,
            max_jobs_of_slow_origins: None,
            slow_request_seconds: 5,
            http2_window_bytes: WebConfig::default().http2_window,
            jobs: FetcherConfig::default(),
        }
    }
}

impl Settings {
    /// Concurrent jobs of one Source, at least one.
    fn share(&self) -> usize {
        self.max_jobs_per_source.unwrap_or(self.max_concurrent_jobs.div_ceil(2)).max(1)
    }

    /// The limit of jobs of slow origins.
    fn origin_shares(&self) -> OriginShares {
        let slots = self.max_concurrent_jobs.max(1);
        let most = self.max_jobs_of_slow_origins.unwrap_or(slots.div_ceil(2));
        OriginShares::new(slots, most, Duration::from_secs(self.slow_request_seconds.max(1)))
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

/// Processes the fetch jobs of every active origin queue until the service stops; then finishes those in progress.
///
/// # Errors
/// When the configuration is wrong, or a job fails in a way that only the operator can fix.
pub fn serve(context: Context<Config>) -> BoxFuture<'static, anyhow::Result<()>> {
    fleet::serve(work(context))
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let share = context.config.fetcher.share();
    let origin_shares = context.config.fetcher.origin_shares();
    let Settings { max_concurrent_jobs, http2_window_bytes, jobs, .. } = context.config.fetcher.clone();
    let patience = jobs.job_time();
    let max_concurrent_jobs = max_concurrent_jobs.max(1);
    // Memory of a job: the bodies that wait for a pack, or the pack built from them (chunk by chunk), and the body
    // that is being received. Or a part of a package: once whole, while it is stored, and once in the pieces that are
    // combined.
    let pack_bytes = (PackLimits::default().bytes + jobs.pack_threshold_bytes) as u64;
    let job_bytes = pack_bytes.max(2 * store::part_bytes(jobs.max_package_bytes));
    context.metrics.bound_memory("fetcher-jobs", max_concurrent_jobs as u64 * job_bytes);
    context.metrics.bound_memory("fetcher-patches", patch_room::BYTES);
    // Each job has at most one connection with a full window, while the job is slower than its server.
    let window_bytes = max_concurrent_jobs as u64 * u64::from(http2_window_bytes);
    context.metrics.bound_memory("fetcher-connections", window_bytes);
    let counted = FetcherMetrics::register(&context.metrics);
    FetcherMetrics::show_slow_jobs(&context.metrics, origin_shares.clone());

    let Connections { bus, store } =
        fleet::join(&context, &context.config.nats, &context.config.store).await?;
    let Context { config, vars, readiness, stop, metrics } = context;
    // The bus enforces the limit of an origin in the whole fleet; a job sends one request at a time.
    let credentials = Credentials::read(&config.http.credentials, &vars)?;
    let web = WebConfig { http2_window: http2_window_bytes, ..config.http.web(max_concurrent_jobs) };
    let client = Client::new(web)?;
    fleet::count_requests(&client, &config.http.origin_groups, &metrics)?;
    let control = fleet::open_control(&config.nats, &vars, &readiness, &stop).await?;
    // Until the jobs in progress have ended: they still need the cooldowns of the fleet.
    let _rests = fleet::share_cooldowns(&client, &control, Arc::new(SystemClock), &readiness, &stop).await?;
    let me = MemberId::fresh("fetcher");
    let member =
        fleet::become_member(&control, &me, Role::Fetcher, SystemClock.now(), &readiness, &stop).await?;
    let _rate = fleet::share_rate(&client, &control, &readiness, &stop).await?;
    let fetcher = Fetcher::new(client, store, Arc::clone(&bus), Arc::new(SystemClock), jobs)
        .knowing(credentials)
        .counted(counted)
        .sharing_by_origin(origin_shares.clone())
        .stopped_by(stop.clone());

    let giver = fetcher.clone();
    let shares = Shares::new(share, patience, move |message: bus::Message| {
        let giver = giver.clone();
        async move { giver.give_back(message.payload).await }
    });
    let worker = Worker::new(bus, move |message: bus::Message| {
        let fetcher = fetcher.clone();
        async move { fetcher.work(message.payload).await }
    });
    let capacity = Arc::new(Semaphore::new(max_concurrent_jobs));
    worker.within(capacity).sharing(shares).sharing_by_origin(origin_shares).run_origins(stop).await?;
    member.leave().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use secrets::Vars;
    use service::config;

    use super::*;

    #[test]
    fn a_source_has_half_of_the_jobs_unless_the_operator_says_so() {
        let share = |max_concurrent_jobs, max_jobs_per_source| {
            Settings { max_concurrent_jobs, max_jobs_per_source, ..Settings::default() }.share()
        };
        assert_eq!([share(64, None), share(5, None), share(1, None), share(0, None)], [32, 3, 1, 1]);
        assert_eq!([share(64, Some(64)), share(64, Some(0))], [64, 1]);
    }

    #[test]
    fn the_sample_configuration_is_read_and_says_what_the_defaults_say() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/fetcher.yaml");
        let vars = Vars::default().with("THRESHER_FETCHER_CONFIG", sample);
        let config: Config = config::load("fetcher", &vars).unwrap();
        assert_eq!(config.fetcher, Settings::default());
        let misspelt = vars.with("THRESHER_FETCHER__FETCHER__JOBS", "{at_a_time: 3}");
        assert!(config::load::<Config>("fetcher", &misspelt).is_err());
    }
}
