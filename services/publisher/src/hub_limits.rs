//! Limits of a hub.

use std::time::Duration;

use web::AddressPolicy;

/// Limits of a hub.
#[derive(Debug, Clone)]
pub struct HubLimits {
    /// The most subscribers.
    pub subscribers: usize,
    /// The most of them at one host.
    pub per_host: usize,
    /// The most subscribers of all hubs of a process.
    pub of_all: usize,
    /// The most hubs that are open for requests alone, before they have a subscriber, where several processes serve.
    pub without_subscribers: usize,
    /// The most bytes of payloads in memory, of all hubs of a process, with those under way. Who needs one that left
    /// gets its changes from the Change Lists.
    pub payload_bytes: usize,
    /// The shortest lease.
    pub least_lease: Duration,
    /// The longest lease. It binds if it is shorter than the shortest.
    pub longest_lease: Duration,
    /// How long a callback may take to answer.
    pub answer_time: Duration,
    /// The first pause after a failed delivery; it doubles.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// A subscriber that took nothing for so long loses its subscription.
    pub give_up: Duration,
    /// Addresses that callbacks may have.
    pub addresses: AddressPolicy,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self {
            subscribers: 1_000,
            per_host: 100,
            of_all: 100_000,
            without_subscribers: 64,
            payload_bytes: 64 * 1024 * 1024,
            least_lease: Duration::from_secs(300),
            longest_lease: Duration::from_secs(31 * 24 * 3_600),
            answer_time: Duration::from_secs(10),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(600),
            give_up: Duration::from_secs(24 * 3_600),
            addresses: AddressPolicy::public_only(),
        }
    }
}
