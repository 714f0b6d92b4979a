//! Configuration of a scheduler.

use std::num::NonZeroUsize;
use std::time::Duration;

use catalog::CacheBudget;
use control::LabelKey;
use fleet::{HttpConfig, NatsConfig, PushConfig, StoreConfig};
use planning::{RunLimits, WindowLimits};
use serde::Deserialize;
use service::{FrameConfig, ServiceConfig};
use url::Url;

use crate::places::{RunSize, Turns};

const MIB: usize = 1024 * 1024;

/// The daemon's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub service: FrameConfig,
    /// The message bus, and the control store beside it.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store.
    pub store: StoreConfig,
    /// HTTP settings for requests to Sources.
    #[serde(default)]
    pub http: HttpConfig,
    /// Whether to subscribe to notifications of Sources, and how hubs reach the gateway.
    #[serde(default)]
    pub push: PushConfig,
    /// Settings of the scheduler itself.
    #[serde(default)]
    pub scheduler: Settings,
}

/// Settings of the scheduler itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Name of this process for people. A member ID that is never reused is derived from it.
    pub name: Option<String>,
    /// Memory for runs and the cache below, in MiB. Runs that would need more wait for their turn. A run takes 8 MiB,
    /// one of a Source with more than 5,000 entries 56 MiB.
    pub memory_megabytes: usize,
    /// Maximum number of runs with a place at a time.
    pub max_concurrent_runs: usize,
    /// A label of Sources, such as `owner`: runs of Sources with one value of it take at most half of the memory and the
    /// places, while others wait. Without it, labels have no shares.
    pub share_label: Option<LabelKey>,
    /// How long a run keeps its place while others wait, in seconds, the first time. A small Source needs no more.
    pub first_turn_seconds: u64,
    /// The same for later turns, in seconds. Doubled each time.
    pub turn_seconds: u64,
    /// Maximum origin queues of one run, each with a consumer at NATS. Further origins wait for their turn.
    pub max_open_origins: NonZeroUsize,
    /// Memory for recently read blocks of all catalogs, in MiB.
    pub cache_megabytes: usize,
    /// Sources that are asked at a time whether they answer, before their runs get places: new ones, and those that
    /// did not answer before.
    pub max_concurrent_probes: usize,
    /// How long a Source has for that answer, in seconds.
    pub probe_timeout_seconds: u64,
    /// How long a poll of an idle Source takes one of as many turns, in seconds. A slower one begins again in a turn for
    /// slow Sources, a quarter as many, so that these do not keep others waiting.
    pub poll_turn_seconds: u64,
    /// How many Sources have metric series of their own: those that are late the most. All others share one, `other`.
    pub metrics_max_sources: usize,
    /// A label of Sources, such as `country`: metrics `thresher_source_group_*` count Sources by its values. Without it,
    /// there are none.
    pub metrics_label: Option<LabelKey>,
    /// How many values of that label have metric series of their own: those of the most Sources. All other Sources
    /// share one, `other`.
    pub metrics_max_groups: usize,
    /// Grace period after a Source's scheduled time before it counts as stale, in seconds.
    pub stale_after_seconds: u64,
    /// Minimum time from the end of a run to the next run that a hint starts, in seconds. After a failed run, hub
    /// deliveries wait as long.
    pub hint_debounce_seconds: u64,
    /// Maximum of that time for unproved hints (no token, no signature), in seconds. The time grows from
    /// `hint_debounce_seconds` while such hints bring no change.
    pub hint_debounce_max_seconds: u64,
    /// How often to poll a Source that is subscribed to but has no schedule, in seconds: its hub may have gone
    /// silent. 0 is never.
    pub fallback_poll_seconds: u64,
    /// How long a notification may be in transit before its changes count as missed, in seconds.
    pub notification_timeout_seconds: u64,
    /// URL that identifies the fleet in the notifications that it sends to other inboxes. Some receivers identify
    /// senders by it.
    pub identity: Option<Url>,
    /// Names of those `http.credentials` that are used for other inboxes, each at its own origin.
    pub inbox_credentials: Vec<String>,
    /// How often to poll an inbox of others that a Source names, in seconds, at least 1.
    pub inbox_poll_seconds: u64,
    /// Limits on how much one run reads of a Source's documents.
    pub limits: RunLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: None,
            memory_megabytes: 960,
            max_concurrent_runs: 32,
            share_label: None,
            first_turn_seconds: 20,
            turn_seconds: 60,
            max_open_origins: WindowLimits::default().origins,
            cache_megabytes: 64,
            max_concurrent_probes: 256,
            probe_timeout_seconds: 10,
            poll_turn_seconds: 10,
            metrics_max_sources: 50,
            metrics_label: None,
            metrics_max_groups: 20,
            stale_after_seconds: 21_600,
            hint_debounce_seconds: 10,
            hint_debounce_max_seconds: 86_400,
            fallback_poll_seconds: 21_600,
            notification_timeout_seconds: 60,
            identity: None,
            inbox_credentials: Vec::new(),
            inbox_poll_seconds: 300,
            limits: RunLimits::default(),
        }
    }
}

impl Settings {
    pub(crate) fn probe_timeout(&self) -> Duration {
        Duration::from_secs(self.probe_timeout_seconds.max(1))
    }

    pub(crate) fn poll_turn(&self) -> Duration {
        Duration::from_secs(self.poll_turn_seconds.max(1))
    }

    pub(crate) fn turns(&self) -> Turns {
        let seconds = |seconds: u64| Duration::from_secs(seconds.max(1));
        Turns { first: seconds(self.first_turn_seconds), later: seconds(self.turn_seconds) }
    }

    pub(crate) fn freshness_grace(&self) -> Duration {
        Duration::from_secs(self.stale_after_seconds)
    }

    pub(crate) fn hint_pause(&self) -> Duration {
        Duration::from_secs(self.hint_debounce_seconds)
    }

    pub(crate) fn hint_pause_most(&self) -> Duration {
        Duration::from_secs(self.hint_debounce_max_seconds)
    }

    /// None for never.
    pub(crate) fn backup_poll(&self) -> Option<Duration> {
        (self.fallback_poll_seconds > 0).then(|| Duration::from_secs(self.fallback_poll_seconds))
    }

    pub(crate) fn notification_patience(&self) -> Duration {
        Duration::from_secs(self.notification_timeout_seconds)
    }

    pub(crate) fn inbox_poll(&self) -> Duration {
        Duration::from_secs(self.inbox_poll_seconds.max(1))
    }

    /// The caches of all catalogs: for small tables, for blocks of records, and for indexes and filters.
    pub(crate) fn cache(&self) -> CacheBudget {
        let all = self.cache_megabytes * MIB;
        let tables = (all / 16).min(4 * MIB);
        CacheBudget::new(all * 2 / 5 - tables, all * 3 / 5).with_small_tables(tables)
    }

    /// Memory of all runs together, in bytes.
    pub(crate) fn places_bytes(&self) -> u64 {
        (self.memory_megabytes.saturating_sub(self.cache_megabytes) * MIB) as u64
    }

    /// Upper bound of the memory that grows with the work, in bytes. A large run has its place even where there is less
    /// memory than it takes: then it runs alone.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.places_bytes().max(RunSize::Large.bytes()) + (self.cache_megabytes * MIB) as u64
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

#[cfg(test)]
mod tests {
    use secrets::Vars;
    use service::config;

    use super::*;

    #[test]
    fn the_sample_configuration_is_read_and_says_what_the_defaults_say() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/scheduler.yaml");
        let vars = Vars::default().with("THRESHER_SCHEDULER_CONFIG", sample);
        let config: Config = config::load("scheduler", &vars).unwrap();
        assert_eq!(config.scheduler, Settings::default());
        let misspelt = vars.with("THRESHER_SCHEDULER__SCHEDULER__SOURCES", "3");
        assert!(config::load::<Config>("scheduler", &misspelt).is_err());
    }

    #[test]
    fn the_stated_memory_covers_the_cache_and_one_large_run_at_least() {
        assert_eq!(Settings::default().memory_bytes(), 960 * MIB as u64);
        let least = Settings { memory_megabytes: 0, ..Settings::default() };
        assert_eq!(least.memory_bytes(), (56 + 64) * MIB as u64);
    }
}
