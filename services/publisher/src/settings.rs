//! Limits of the server.

use std::time::Duration;

use crate::access::Tokens;
use crate::hub_limits::HubLimits;
use crate::metrics::PublisherMetrics;
use crate::takedowns::Takedowns;

/// Limits of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most connections at a time.
    pub connections: usize,
    /// The time limit for the head of a request.
    pub head_time: Duration,
    /// How long a client may take no bytes of a response.
    pub stall_time: Duration,
    /// How often a directory is scanned for changes.
    pub rescan: Duration,
    /// The tokens of readers; none if everybody may read.
    pub tokens: Option<Tokens>,
    /// Resources that are withdrawn; none without a list.
    pub takedowns: Option<Takedowns>,
    /// What it counts.
    pub metrics: PublisherMetrics,
    /// The limits of a hub of its own; none without one.
    pub hub: Option<HubLimits>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 512,
            head_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(60),
            rescan: Duration::from_secs(60),
            tokens: None,
            takedowns: None,
            metrics: PublisherMetrics::default(),
            hub: None,
        }
    }
}
