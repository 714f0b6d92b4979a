//! Configuration of requests to Sources.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use model::Network;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use web::{AddressPolicy, BodyLimits, RobotsPolicy, WebConfig};

use crate::{CredentialConfig, OriginGroups};

/// The HTTP/2 window of services that read documents and leave bodies to fetchers.
const DOCUMENTS_WINDOW: u32 = 2 * 1024 * 1024;

/// Configuration of requests to Sources: field `http` of the services that send requests.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// A URL or mail address of the operator, sent with every request.
    pub contact: Option<String>,
    /// The longest wait for a connection, in seconds.
    pub connect_timeout_seconds: u64,
    /// The longest wait for the head of a response, redirects included, in seconds.
    pub first_byte_timeout_seconds: u64,
    /// The longest time without data during a body, in seconds.
    pub stall_timeout_seconds: u64,
    /// The least number of bytes of a body per minute, unless it ends; 0 = no such limit.
    pub min_bytes_per_minute: u64,
    /// The longest time for a whole body, in seconds, plus one second for each 16 KiB of it.
    pub body_timeout_seconds: u64,
    /// The most requests per second from the whole fleet to one origin; none = no limit. Set the same value in all
    /// services. It is split evenly among fetchers and schedulers, whether they have work or not.
    pub requests_per_second: Option<NonZeroU32>,
    /// The limit for all origins (ports) of one host together, as a multiple of the limit for one origin. It applies to
    /// concurrent requests and to requests per second of this process.
    pub host_share: NonZeroU16,
    /// The cooldown of an origin whose bot defence answered with a challenge, in seconds. Set the same value in
    /// fetchers and schedulers.
    pub challenge_cooldown_seconds: u64,
    /// Credentials that Sources can name, each for one origin. Fetchers and schedulers need the same.
    pub credentials: BTreeMap<String, CredentialConfig>,
    /// Groups of origins for the metrics of requests. Set the same value in all services.
    pub origin_groups: OriginGroups,
    /// Non-public networks that requests for every Source may reach: `[10.1.0.0/16]`. Without this limit, a Source
    /// could make the fleet probe the operator's own network. The metadata services of clouds are never reached.
    #[serde(deserialize_with = "networks", alias = "allow_private_addresses")]
    pub allow_networks: Vec<Network>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let web = WebConfig::default();
        Self {
            contact: None,
            connect_timeout_seconds: web.connect_timeout.as_secs(),
            first_byte_timeout_seconds: web.first_byte_timeout.as_secs(),
            stall_timeout_seconds: web.stall_timeout.as_secs(),
            min_bytes_per_minute: web.bodies.least,
            body_timeout_seconds: web.bodies.time.as_secs(),
            requests_per_second: None,
            host_share: const { NonZeroU16::new(4).unwrap() },
            challenge_cooldown_seconds: web.challenge_rest.as_secs(),
            credentials: BTreeMap::new(),
            origin_groups: OriginGroups::default(),
            allow_networks: Vec::new(),
        }
    }
}

impl HttpConfig {
    /// The configuration of the client, with at most `per_origin` concurrent requests of this process to one origin.
    /// The message bus enforces the limit of the fleet.
    pub fn web(&self, per_origin: usize) -> WebConfig {
        let allow = |policy: AddressPolicy, network: &Network| policy.allow_network(*network);
        let addresses = self.allow_networks.iter().fold(AddressPolicy::public_only(), allow);
        WebConfig {
            contact: self.contact.clone(),
            connect_timeout: Duration::from_secs(self.connect_timeout_seconds),
            first_byte_timeout: Duration::from_secs(self.first_byte_timeout_seconds),
            stall_timeout: Duration::from_secs(self.stall_timeout_seconds),
            bodies: BodyLimits {
                least: self.min_bytes_per_minute,
                time: Duration::from_secs(self.body_timeout_seconds),
                ..BodyLimits::default()
            },
            http2_window: DOCUMENTS_WINDOW,
            requests_per_second: self.requests_per_second,
            challenge_rest: Duration::from_secs(self.challenge_cooldown_seconds),
            per_origin,
            host_share: self.host_share.get().into(),
            addresses,
            // As on a laptop: a publication invites to fetch what it lists, and the crawl-delay is obeyed all the same.
            robots: RobotsPolicy::links_only(),
            ..WebConfig::default()
        }
    }
}

/// Parses a list of networks. Rejects the former boolean field, which opened every address.
fn networks<'de, D: Deserializer<'de>>(field: D) -> Result<Vec<Network>, D::Error> {
    struct Networks;

    impl<'de> Visitor<'de> for Networks {
        type Value = Vec<Network>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of networks, such as [10.1.0.0/16]")
        }

        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Err(E::custom(
                "`allow_private_addresses` is replaced by `allow_networks`, which names what may be reached, such as \
                 `allow_networks: [10.1.0.0/16]`; a Source may have networks of its own (`thresher source add \
                 --allow-network`)",
            ))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    field.deserialize_any(Networks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_makes_of_robots_txt_what_a_laptop_does() {
        assert_eq!(HttpConfig::default().web(4).robots, RobotsPolicy::links_only());
    }

    #[test]
    fn only_public_addresses_are_reached_unless_the_operator_says_so() {
        let strict = HttpConfig::default().web(4);
        assert_eq!((strict.addresses, strict.per_origin), (AddressPolicy::public_only(), 4));
        let open: HttpConfig = serde_json::from_str(r#"{"allow_networks": ["10.1.0.0/16", "::1"]}"#).unwrap();
        let networks = ["10.1.0.0/16", "::1/128"].map(|network| network.parse().unwrap());
        let allowed = networks.into_iter().fold(AddressPolicy::public_only(), AddressPolicy::allow_network);
        assert_eq!(open.web(1).addresses, allowed);
        assert_eq!((strict.host_share, open.web(1).host_share), (4, 4));
        assert!(serde_json::from_str::<HttpConfig>(r#"{"host_share": 0}"#).is_err());
        assert!(serde_json::from_str::<HttpConfig>(r#"{"timeout": 1}"#).is_err());
        let wrong = serde_json::from_str::<HttpConfig>(r#"{"allow_networks": ["intern"]}"#).unwrap_err();
        assert!(wrong.to_string().contains("10.1.0.0/16"), "{wrong}");
    }

    #[test]
    fn the_field_that_opened_every_address_is_refused_with_the_one_to_use() {
        for value in ["true", "false"] {
            let text = format!(r#"{{"allow_private_addresses": {value}}}"#);
            let refused = serde_json::from_str::<HttpConfig>(&text).unwrap_err().to_string();
            assert!(refused.contains("`allow_networks: [10.1.0.0/16]`"), "{refused}");
        }
    }

    #[test]
    fn bodies_are_held_to_what_is_configured() {
        assert_eq!(HttpConfig::default().web(1).bodies, BodyLimits::default());
        let json = r#"{"min_bytes_per_minute": 7, "body_timeout_seconds": 9}"#;
        let bodies = serde_json::from_str::<HttpConfig>(json).unwrap().web(1).bodies;
        assert_eq!((bodies.least, bodies.time), (7, Duration::from_secs(9)));
    }
}
