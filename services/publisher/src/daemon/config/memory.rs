//! The most memory that each part of the publisher takes.

use std::time::Duration;

use service::Metrics;
use serving::connections::ConnectionLimits;

use super::DaemonSettings;
use crate::hub_clients::AT_ONE_HUB;
use crate::settings::OAI_TURNS;
use crate::topics::Topics;

/// Memory of a publication in the making: three parts of an upload of 8 MiB each, and the pass over the catalog.
const PUBLICATION_BYTES: usize = 32 * 1024 * 1024;

/// Memory of a request of OAI-PMH: a page of 8 MiB, read and written, and its buffers.
const OAI_BYTES: usize = 24 * 1024 * 1024;

/// Memory of hubs beside the newest payloads. 64 payloads of earlier changes are under way, and the entries of 16
/// further ones are read, and of four of new changes.
const DELIVERY_BYTES: usize = 112 * 1024 * 1024;

/// Memory of a publication that tells a hub of others: the entries of its changes, and the payload under way.
const TELLING_BYTES: usize = 12 * 1024 * 1024;

impl DaemonSettings {
    /// The bytes of the cache for parts of catalogs.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_megabytes.max(1) * 1024 * 1024
    }

    /// Declares the most memory that each part takes.
    pub(crate) fn bound_memory(&self, metrics: &Metrics) {
        let slow = (self.max_concurrent_publications / 4).max(1);
        let publications = (self.max_concurrent_publications + slow) * PUBLICATION_BYTES;
        let limits = ConnectionLimits {
            most: self.connections,
            per_client: None,
            proxies: self.trusted_proxies.clone().into(),
            head_time: Duration::from_secs(self.header_timeout_seconds),
            stall_time: None,
        };
        metrics.bound_memory("publisher-publications", publications as u64);
        metrics.bound_memory("publisher-connections", limits.memory_bytes(0) as u64);
        metrics.bound_memory("publisher-oai", (OAI_TURNS * OAI_BYTES) as u64);
        metrics.bound_memory("publisher-cache", self.cache_bytes() as u64);
        let hubs = self.hub_bytes();
        if hubs > 0 {
            metrics.bound_memory("publisher-hubs", hubs as u64);
        }
    }

    /// The bytes of all hubs: those of its own, and those of others that are told.
    pub(super) fn hub_bytes(&self) -> usize {
        let others = self.all_hubs().len();
        let topics = if others == 0 { 0 } else { self.topics().most_bytes() };
        let own = self.own_hub.as_ref().map_or(topics, |hub| hub.payload_bytes() + DELIVERY_BYTES);
        own + others * AT_ONE_HUB * TELLING_BYTES
    }

    /// The newest payloads of topics: with hubs of its own, a part of the memory for their payloads.
    pub(super) fn topics(&self) -> Topics {
        self.own_hub.as_ref().map(|hub| Topics::of(hub.payload_bytes() / 4)).unwrap_or_default()
    }
}
