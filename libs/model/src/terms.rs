//! Request settings of one Source.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use crate::{Network, Origin, Robots};

/// Request settings of one Source, as its operator configured them. A setting left out takes the default of
/// the process that sends the request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Terms {
    /// Requests per second to one origin, of the whole fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<NonZeroU32>,
    /// How robots.txt is obeyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<Robots>,
    /// The contact in the `User-Agent`, for the Source's operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The name of a credential in the configuration of the process that sends requests; never the credential
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Networks that are not public and may be reached for this Source, beside those that the service itself
    /// allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_networks: Vec<Network>,
    /// The origin of the Source's entry. Its invitation does not extend to other sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Origin>,
    /// Concurrent requests to one origin, of the whole fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_origin: Option<NonZeroU16>,
    /// The most bytes of a resource that are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<NonZeroU64>,
    /// Whether HTML is also accepted where another media type was declared or stored before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_html: bool,
}

impl Terms {
    /// Whether no setting is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
