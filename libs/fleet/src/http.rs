//! How Sources are asked.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use model::Network;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use web::{AddressPolicy, BodyLimits, RobotsPolicy, WebConfig};

use crate::{CredentialConfig, LaneGroups};

/// The HTTP/2 window of services that read documents and leave bodies to fetchers.
const DOCUMENTS_WINDOW: u32 = 2 * 1024 * 1024;

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
    /// The fewest bytes of a body that must come in a minute, unless it ends; 0 = no such limit.
    pub least_bytes_per_minute: u64,
    /// The longest time for a whole body, in seconds; one more for each 16 KiB of it.
    pub body_timeout_seconds: u64,
    /// The most requests in a second that the whole fleet sends to one origin; none = no limit. The same in all services:
    /// it is split evenly among fetchers and schedulers, whether they have work or not.
    pub requests_per_second: Option<NonZeroU32>,
    /// How many times the limit of one origin this process asks all origins (ports) of one host at a time, and in a second.
    pub host_share: NonZeroU16,
    /// How long an origin is left alone whose bot defence answered with a challenge, in seconds. The same in fetchers and schedulers.
    pub challenge_rest_seconds: u64,
    /// What Sources can name to be let in, each for one origin; fetchers and schedulers need the same.
    pub credentials: BTreeMap<String, CredentialConfig>,
    /// Groups of origins by which requests are counted. The same in all services.
    pub lane_groups: LaneGroups,
    /// Networks that are not public and may be reached all the same, for every Source: `[10.1.0.0/16]`. Otherwise a Source
    /// could make the fleet look around in the operator's own network. Where clouds keep secrets is never reached.
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
            least_bytes_per_minute: web.bodies.least,
            body_timeout_seconds: web.bodies.time.as_secs(),
            requests_per_second: None,
            host_share: const { NonZeroU16::new(4).unwrap() },
            challenge_rest_seconds: web.challenge_rest.as_secs(),
            credentials: BTreeMap::new(),
            lane_groups: LaneGroups::default(),
            allow_networks: Vec::new(),
        }
    }
}

impl HttpConfig {
    /// The client's configuration, with at most `per_origin` requests at a time to one origin from this process. The limit
    /// over the fleet is kept by the message bus.
    pub fn web(&self, per_origin: usize) -> WebConfig {
        let allow = |policy: AddressPolicy, network: &Network| policy.allow_network(*network);
        let addresses = self.allow_networks.iter().fold(AddressPolicy::public_only(), allow);
        WebConfig {
            contact: self.contact.clone(),
            connect_timeout: Duration::from_secs(self.connect_timeout_seconds),
            first_byte_timeout: Duration::from_secs(self.first_byte_timeout_seconds),
            stall_timeout: Duration::from_secs(self.stall_timeout_seconds),
            bodies: BodyLimits {
                least: self.least_bytes_per_minute,
                time: Duration::from_secs(self.body_timeout_seconds),
                ..BodyLimits::default()
            },
            http2_window: DOCUMENTS_WINDOW,
            requests_per_second: self.requests_per_second,
            challenge_rest: Duration::from_secs(self.challenge_rest_seconds),
            per_origin,
            host_share: self.host_share.get().into(),
            addresses,
            // As on a laptop: what a publication names is an invitation, and a crawl-delay is kept all the same.
            robots: RobotsPolicy::invited(),
            ..WebConfig::default()
        }
    }
}

/// Reads a list of networks, and refuses the yes or no of the field that was there before and opened every address.
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
        assert_eq!(HttpConfig::default().web(4).robots, RobotsPolicy::invited());
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
        let json = r#"{"least_bytes_per_minute": 7, "body_timeout_seconds": 9}"#;
        let bodies = serde_json::from_str::<HttpConfig>(json).unwrap().web(1).bodies;
        assert_eq!((bodies.least, bodies.time), (7, Duration::from_secs(9)));
    }
}
