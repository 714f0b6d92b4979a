//! What holds for the requests of one Source.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use crate::{Lane, Network, Robots};

/// What holds for the requests of one Source, as its operator wants it. What is left out is as whoever sends them is configured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Terms {
    /// Requests in a second to one origin, of the whole fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<NonZeroU32>,
    /// What is made of robots.txt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<Robots>,
    /// Whom the Source's operator can turn to, for the `User-Agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The name of a credential in the configuration of whoever sends requests; never the credential itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Networks that are not public and may be reached for this Source, beside those that the service itself allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_networks: Vec<Network>,
    /// The origin of the Source's entry. To other sites its invitation does not extend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Lane>,
    /// Requests open at one origin at the same time, of the whole fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_origin: Option<NonZeroU16>,
    /// The most bytes of a resource that is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_bytes: Option<NonZeroU64>,
    /// Whether HTML is taken also where another media type was declared or held before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_html: bool,
}

impl Terms {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
