//! How Sources are asked.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use web::{AddressPolicy, RobotsPolicy, WebConfig};

use crate::{CredentialConfig, LaneGroups};

/// How Sources are asked: field `http` of the services that send requests.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// A URL or mail address where the operator can be reached; it is sent with every request.
    pub contact: Option<String>,
    /// The longest wait for a connection, in seconds.
    pub connect_timeout_seconds: u64,
    /// The longest wait for the head of an answer, in seconds.
    pub first_byte_timeout_seconds: u64,
    /// The longest time that a body may stand still, in seconds.
    pub stall_timeout_seconds: u64,
    /// The most requests in a second that the whole fleet sends to one origin; none = no limit. The same in all services:
    /// it is split evenly among fetchers and schedulers, whether they have work or not.
    pub requests_per_second: Option<NonZeroU32>,
    /// What Sources can name to be let in, each for one origin; fetchers and schedulers need the same.
    pub credentials: BTreeMap<String, CredentialConfig>,
    /// Groups of origins by which requests are counted. The same in all services.
    pub lane_groups: LaneGroups,
    /// Let private, loopback and link-local addresses be reached too. Otherwise a Source could make the fleet look around
    /// in the operator's own network.
    pub allow_private_addresses: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let web = WebConfig::default();
        Self {
            contact: None,
            connect_timeout_seconds: web.connect_timeout.as_secs(),
            first_byte_timeout_seconds: web.first_byte_timeout.as_secs(),
            stall_timeout_seconds: web.stall_timeout.as_secs(),
            requests_per_second: None,
            credentials: BTreeMap::new(),
            lane_groups: LaneGroups::default(),
            allow_private_addresses: false,
        }
    }
}

impl HttpConfig {
    /// The client's configuration, with at most `per_origin` requests at a time to one origin from this process. The limit
    /// over the fleet is kept by the message bus.
    pub fn web(&self, per_origin: usize) -> WebConfig {
        let addresses = match self.allow_private_addresses {
            true => AddressPolicy::allow_all(),
            false => AddressPolicy::public_only(),
        };
        WebConfig {
            contact: self.contact.clone(),
            connect_timeout: Duration::from_secs(self.connect_timeout_seconds),
            first_byte_timeout: Duration::from_secs(self.first_byte_timeout_seconds),
            stall_timeout: Duration::from_secs(self.stall_timeout_seconds),
            requests_per_second: self.requests_per_second,
            per_origin,
            addresses,
            // As on a laptop: what a publication names is an invitation, and a crawl-delay is kept all the same.
            robots: RobotsPolicy::invited(),
            ..WebConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_makes_of_robots_txt_what_a_laptop_does() {
        assert_eq!(HttpConfig::default().web(4).robots, RobotsPolicy::invited());
    }

    #[test]
    fn only_public_addresses_are_reached_unless_the_operator_says_so() {
        let strict = HttpConfig::default().web(4);
        assert_eq!((strict.addresses, strict.per_origin), (AddressPolicy::public_only(), 4));
        let open: HttpConfig = serde_json::from_str(r#"{"allow_private_addresses": true}"#).unwrap();
        assert_eq!(open.web(1).addresses, AddressPolicy::allow_all());
        assert!(serde_json::from_str::<HttpConfig>(r#"{"timeout": 1}"#).is_err());
    }
}
