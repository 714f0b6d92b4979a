//! What a scheduler is told.

use std::num::NonZeroUsize;
use std::time::Duration;

use catalog::CatalogConfig;
use fleet::{HttpConfig, NatsConfig, PushConfig, StoreConfig};
use serde::Deserialize;
use service::{FrameConfig, ServiceConfig};
use url::Url;

use crate::limits::RunLimits;

use crate::options::WindowLimits;

const MIB: usize = 1024 * 1024;
/// What a harvest takes beside its catalog: the document that is being read, the window, the batches.
const HARVEST_BYTES: usize = 32 * MIB;

/// The daemon's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub frame: FrameConfig,
    /// The message bus, and what the fleet shares beside it.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store.
    pub store: StoreConfig,
    /// How Sources are asked for their documents.
    #[serde(default)]
    pub http: HttpConfig,
    /// Whether Sources' notifications are subscribed to, and how hubs reach the gateway.
    #[serde(default)]
    pub push: PushConfig,
    /// What is the scheduler's own.
    #[serde(default)]
    pub scheduler: Settings,
}

/// What is the scheduler's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What people know this process by; a name that is never used again is made of it.
    pub name: Option<String>,
    /// Sources that are harvested at a time. Each takes the memory of an open catalog.
    pub sources_at_a_time: usize,
    /// Origins of one run that have a queue of jobs at a time, each with a consumer at NATS. Further ones wait for
    /// their turn.
    pub origins_at_a_time: NonZeroUsize,
    /// Memory for what was read of all catalogs lately, in MiB.
    pub cache_megabytes: usize,
    /// How long a run waits for a Source that does not answer or asks for patience, in seconds, before it fails.
    pub source_patience_seconds: u64,
    /// How many Sources have series of their own among the metrics: those that are late the most. All others are one, `other`.
    pub sources_shown: usize,
    /// How long after its time, by its own schedule, a Source may be in step again before it counts as stale, in seconds.
    pub freshness_grace_seconds: u64,
    /// How long after the end of a run a Source is left alone at which somebody has hinted: that it has changed, in seconds. After one that failed, what its hub has
    /// delivered waits as long.
    pub hint_pause_seconds: u64,
    /// The longest that a Source is left alone for which an unproved hint (no token, no signature) has come, in seconds: the pause grows
    /// from `hint_pause_seconds` while such hints bring nothing.
    pub hint_pause_most_seconds: u64,
    /// How often a Source is looked at whose notifications are subscribed to and that nobody has scheduled, in seconds: its hub may have gone
    /// silent. 0 is never.
    pub backup_poll_seconds: u64,
    /// How long a notification may be under way before the changes that it should tell count as missed, in seconds.
    pub notification_patience_seconds: u64,
    /// Who the fleet is, in the notifications that it leaves in others' inboxes: a URL of its own. Some know their senders by it.
    pub identity: Option<Url>,
    /// The names of those of `http.credentials` that others' inboxes are asked with, each at its own origin.
    pub inbox_credentials: Vec<String>,
    /// How often an inbox of others is looked at that a Source names, in seconds, at least 1.
    pub inbox_poll_seconds: u64,
    /// How much one run reads of a Source's documents at most.
    pub limits: RunLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: None,
            sources_at_a_time: 16,
            origins_at_a_time: WindowLimits::default().origins,
            cache_megabytes: 64,
            source_patience_seconds: 3_600,
            sources_shown: 50,
            freshness_grace_seconds: 21_600,
            hint_pause_seconds: 10,
            hint_pause_most_seconds: 86_400,
            backup_poll_seconds: 21_600,
            notification_patience_seconds: 60,
            identity: None,
            inbox_credentials: Vec::new(),
            inbox_poll_seconds: 300,
            limits: RunLimits::default(),
        }
    }
}

impl Settings {
    pub(super) fn source_patience(&self) -> Duration {
        Duration::from_secs(self.source_patience_seconds)
    }

    pub(super) fn freshness_grace(&self) -> Duration {
        Duration::from_secs(self.freshness_grace_seconds)
    }

    pub(super) fn hint_pause(&self) -> Duration {
        Duration::from_secs(self.hint_pause_seconds)
    }

    pub(super) fn hint_pause_most(&self) -> Duration {
        Duration::from_secs(self.hint_pause_most_seconds)
    }

    /// None where that is never.
    pub(super) fn backup_poll(&self) -> Option<Duration> {
        (self.backup_poll_seconds > 0).then(|| Duration::from_secs(self.backup_poll_seconds))
    }

    pub(super) fn notification_patience(&self) -> Duration {
        Duration::from_secs(self.notification_patience_seconds)
    }

    pub(super) fn inbox_poll(&self) -> Duration {
        Duration::from_secs(self.inbox_poll_seconds.max(1))
    }

    /// Room for blocks of records, and for indexes and filters, in bytes.
    pub(super) fn cache_bytes(&self) -> (usize, usize) {
        let all = self.cache_megabytes * MIB;
        (all * 2 / 5, all * 3 / 5)
    }

    /// The most that what grows with the work takes, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let one = CatalogConfig::default().unflushed_bytes + HARVEST_BYTES;
        (self.sources_at_a_time.max(1) * one + self.cache_megabytes * MIB) as u64
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use service::{Vars, config};

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
    fn more_sources_at_a_time_take_more_memory() {
        let one = Settings { sources_at_a_time: 1, ..Settings::default() };
        assert!(one.memory_bytes() < Settings::default().memory_bytes());
    }
}
