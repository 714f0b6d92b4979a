//! Configuration of the client.

use std::num::NonZeroU32;
use std::time::Duration;

use model::Origin;

use crate::{AddressPolicy, BodyLimits, Credential, RobotsPolicy};

/// Configuration of a client. All times are spans, all counts are per client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebConfig {
    /// The product name it sends. Default: `thresher/<version>`.
    pub user_agent: String,
    /// A URL or address of its operator; sent as `(+contact)` after the name.
    pub contact: Option<String>,
    /// The longest wait for a connection: name, TCP and TLS together. Default: 10 s.
    pub connect_timeout: Duration,
    /// The longest wait for a response head, connecting and all redirects included. Default: 60 s.
    pub first_byte_timeout: Duration,
    /// The longest time without a byte of the body. Default: 30 s.
    pub stall_timeout: Duration,
    /// Limits of every body: its size and its speed.
    pub bodies: BodyLimits,
    /// How many bytes of one response an HTTP/2 server may send before they are acknowledged; a connection has
    /// this much for each of `per_origin` responses. This bounds the memory per request, and the bytes that a
    /// distant server sends per round trip. At least 65,535. Default: 16 MiB.
    pub http2_window: u32,
    /// Concurrent requests to one origin, at least 1. Default: 4.
    pub per_origin: usize,
    /// The budget of a host for one Source, as a multiple of an origin's budget, at least 1. It limits
    /// concurrent requests, and requests per second where these are limited. Default: 4.
    pub host_share: usize,
    /// The origin of the operator's entry URL, if all requests are for one Source. Its port may be any port.
    /// Other sites are outside its invitation: there the `Disallow` of robots.txt binds. Default: none.
    pub entry: Option<Origin>,
    /// Requests to one origin per second, evenly spaced; none = no limit. Default: none.
    pub requests_per_second: Option<NonZeroU32>,
    /// Redirects followed for one request. Default: 10.
    pub max_redirects: usize,
    /// Attempts of [`Client::get_with_retries`](crate::Client::get_with_retries), the first included. Default: 4.
    pub attempts: u32,
    /// The longest wait before the second attempt; the shortest is half of it. It doubles with each further
    /// attempt. Default: 1 s.
    pub backoff_first: Duration,
    /// The longest wait before any attempt, unless the server asks for more. Default: 30 s.
    pub backoff_max: Duration,
    /// The longest total wait of one request: between its attempts, and for an origin's cooldown. A longer
    /// wait fails at once, and the error says how long to pause. Waiting for a turn (a permit, the rate, a
    /// crawl-delay) does not count. Default: 2 min.
    pub retry_budget: Duration,
    /// The longest `Retry-After` that is obeyed; a longer one counts as this. Default: 1 h.
    pub retry_after_max: Duration,
    /// The cooldown of an origin whose bot defence answered with a challenge. Default: 1 h.
    pub challenge_rest: Duration,
    /// Credentials of origins that require them, at most one per header and origin. Default: none.
    pub credentials: Vec<Credential>,
    /// Which addresses may be reached. Default: all.
    pub addresses: AddressPolicy,
    /// How robots.txt is obeyed. Default: not at all, it is not fetched.
    pub robots: RobotsPolicy,
}

impl WebConfig {
    /// The `User-Agent` header.
    pub fn user_agent_header(&self) -> String {
        match &self.contact {
            Some(contact) => format!("{} (+{contact})", self.user_agent),
            None => self.user_agent.clone(),
        }
    }
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            user_agent: concat!("thresher/", env!("CARGO_PKG_VERSION")).to_owned(),
            contact: None,
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(30),
            bodies: BodyLimits::default(),
            http2_window: 16 * 1024 * 1024,
            per_origin: 4,
            host_share: 4,
            entry: None,
            requests_per_second: None,
            max_redirects: 10,
            attempts: 4,
            backoff_first: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            retry_budget: Duration::from_secs(120),
            retry_after_max: Duration::from_secs(3600),
            challenge_rest: Duration::from_secs(3600),
            credentials: Vec::new(),
            addresses: AddressPolicy::allow_all(),
            robots: RobotsPolicy::ignore(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agent_names_version_and_contact() {
        let config = WebConfig::default();
        assert_eq!(config.user_agent_header(), format!("thresher/{}", env!("CARGO_PKG_VERSION")));
        let config = WebConfig { contact: Some("mailto:a@example.org".into()), ..config };
        assert!(config.user_agent_header().ends_with(" (+mailto:a@example.org)"));
    }
}
