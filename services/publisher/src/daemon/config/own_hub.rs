//! Settings of the sets' own hubs.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use model::Network;
use publish::Base;
use serde::Deserialize;
use url::Url;
use web::AddressPolicy;

use crate::hub_limits::HubLimits;

/// Settings of the sets' own hubs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnHubSettings {
    /// The URL below which subscribers reach the hubs, of this server or the proxy before it: each is at `hub` in the
    /// folder of its set. It may be that of `publisher.base`; a cache before that may not pass on requests to a hub.
    pub base: Url,
    /// The most subscribers of a set, 1 to 10000.
    #[serde(default = "subscribers")]
    pub subscribers: usize,
    /// The most subscribers of a set at one host.
    #[serde(default = "subscribers_per_host")]
    pub subscribers_per_host: usize,
    /// The most subscribers of all hubs that this publisher has open, 1 to 100000.
    #[serde(default = "subscribers_of_all")]
    pub subscribers_of_all: usize,
    /// The most hubs that requests may open before they have a subscriber, 1 to 10000. Each closes some seconds after
    /// its requests are dealt with; further sets answer 503 meanwhile.
    #[serde(default = "hubs_without_subscribers")]
    pub hubs_without_subscribers: usize,
    /// The longest lease of a subscription, in seconds, 300 to 2678400 (31 days).
    #[serde(default = "longest_lease_seconds")]
    pub longest_lease_seconds: u64,
    /// A subscription that took no delivery for this time ends, in seconds, 1 to 2678400.
    #[serde(default = "give_up_seconds")]
    pub give_up_seconds: u64,
    /// Networks that callbacks may be in, besides public addresses.
    #[serde(default)]
    pub allow_networks: Vec<Network>,
    /// Memory for the newest payloads of all hubs, with those under way, in megabytes, 1 to 4096. Who needs an earlier
    /// one gets its changes from the Change Lists.
    #[serde(default = "payload_megabytes")]
    pub payload_megabytes: usize,
}

fn subscribers() -> usize {
    1_000
}

fn subscribers_per_host() -> usize {
    100
}

fn subscribers_of_all() -> usize {
    10_000
}

fn hubs_without_subscribers() -> usize {
    64
}

fn longest_lease_seconds() -> u64 {
    31 * 24 * 3_600
}

fn give_up_seconds() -> u64 {
    24 * 3_600
}

fn payload_megabytes() -> usize {
    64
}

impl OwnHubSettings {
    /// The base of all hubs.
    pub(crate) fn base(&self) -> anyhow::Result<Base> {
        Base::new(self.base.clone()).context("publisher.own_hub.base")
    }

    /// Memory for the newest payloads.
    pub(super) fn payload_bytes(&self) -> usize {
        self.payload_megabytes * 1024 * 1024
    }

    /// Refuses what no hub can do.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.base()?;
        let ranges = [
            ("subscribers", self.subscribers as u64, 1, 10_000),
            ("subscribers_per_host", self.subscribers_per_host as u64, 1, 10_000),
            ("subscribers_of_all", self.subscribers_of_all as u64, 1, 100_000),
            ("hubs_without_subscribers", self.hubs_without_subscribers as u64, 1, 10_000),
            ("longest_lease_seconds", self.longest_lease_seconds, 300, longest_lease_seconds()),
            ("give_up_seconds", self.give_up_seconds, 1, longest_lease_seconds()),
            ("payload_megabytes", self.payload_megabytes as u64, 1, 4_096),
        ];
        for (field, value, least, most) in ranges {
            let is_within = (least..=most).contains(&value);
            ensure!(is_within, "publisher.own_hub.{field} is {least} to {most}, not {value}");
        }
        Ok(())
    }

    /// The limits of all hubs.
    pub(super) fn limits(&self) -> HubLimits {
        let default = HubLimits::default();
        let networks = self.allow_networks.iter().copied();
        HubLimits {
            subscribers: self.subscribers,
            per_host: self.subscribers_per_host,
            of_all: self.subscribers_of_all,
            without_subscribers: self.hubs_without_subscribers,
            payload_bytes: self.payload_bytes(),
            longest_lease: Duration::from_secs(self.longest_lease_seconds),
            give_up: Duration::from_secs(self.give_up_seconds),
            addresses: networks.fold(default.addresses, AddressPolicy::allow_network),
            ..default
        }
    }
}
