//! What the client is told.

use std::num::NonZeroU32;
use std::time::Duration;

use model::Lane;

use crate::{AddressPolicy, BodyLimits, Credential, RobotsPolicy};

/// How the client behaves. All times are spans, all counts are per client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebConfig {
    /// How it names itself. Default: `thresher/<version>`.
    pub user_agent: String,
    /// A URL or address where its operator can be reached; sent as `(+contact)` after the name.
    pub contact: Option<String>,
    /// The longest wait for a connection: name, TCP and TLS together. Default: 10 s.
    pub connect_timeout: Duration,
    /// The longest wait for the head of an answer, connecting included. Default: 60 s.
    pub first_byte_timeout: Duration,
    /// The longest time that a body may stand still. Default: 30 s.
    pub stall_timeout: Duration,
    /// What is demanded of every body: its size, and how fast it comes.
    pub bodies: BodyLimits,
    /// How many bytes an HTTP/2 server may send before it hears that they were taken, of one answer and of all on one
    /// connection. So much of a connection may lie in memory; and a distant server sends no more than this in the time
    /// of a way there and back. At least 65,535. Default: 16 MiB.
    pub http2_window: u32,
    /// Requests to one origin at a time, at least 1. Default: 4.
    pub per_origin: usize,
    /// How many times the budget of one origin all origins of its host have together for one Source, at least 1: requests at a time,
    /// and in a second where that is limited. Default: 4.
    pub host_share: usize,
    /// The origin of the entry that the operator gave, if all requests are for one Source. At its port it is asked whatever
    /// port that is. The `Disallow` of robots.txt binds at other sites, to which its invitation does not extend.
    /// Default: none.
    pub entry: Option<Lane>,
    /// Requests to one origin in a second, evenly spaced; none = no limit. Default: none.
    pub requests_per_second: Option<NonZeroU32>,
    /// Redirects followed for one request. Default: 10.
    pub max_redirects: usize,
    /// Attempts of [`Client::get_with_retries`](crate::Client::get_with_retries), the first included. Default: 4.
    pub attempts: u32,
    /// The longest wait before the second attempt; the shortest is half of it. It doubles with each further one. Default: 1 s.
    pub backoff_first: Duration,
    /// The longest wait before any attempt, unless the server asks for more. Default: 30 s.
    pub backoff_max: Duration,
    /// The longest time spent waiting for one request: between its attempts all together, and for an origin that
    /// wants its rest. What would take longer fails at once, and says for how long to leave the server alone. Waiting for a turn
    /// (a place, the pace, a crawl-delay) does not count. Default: 2 min.
    pub retry_budget: Duration,
    /// The longest `Retry-After` that is believed; a longer one counts as this. Default: 1 h.
    pub retry_after_max: Duration,
    /// How long an origin is left alone whose bot defence answered with a challenge. Default: 1 h.
    pub challenge_rest: Duration,
    /// What is sent to the origins that let only those in whom they know, at most one of a header for each origin.
    /// Default: nothing.
    pub credentials: Vec<Credential>,
    /// Which addresses may be reached. Default: all.
    pub addresses: AddressPolicy,
    /// What is made of robots.txt. Default: nothing, it is not fetched.
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
