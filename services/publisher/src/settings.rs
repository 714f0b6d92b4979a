//! Limits of the server.

use std::sync::Arc;
use std::time::Duration;

use model::Network;
use publish::Base;
use tokio::sync::Semaphore;
use url::Url;

use crate::hub_limits::HubLimits;
use crate::metrics::PublisherMetrics;
use crate::readers::Readers;
use crate::takedowns::Takedowns;
use crate::topics::Topics;

/// Requests of OAI-PMH that a server answers at the same time.
pub(crate) const OAI_TURNS: usize = 8;

/// Limits of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most connections at a time.
    pub connections: usize,
    /// The most of one client, or where a proxy names its clients, the most requests of one. None: as many as there are.
    pub connections_per_client: Option<usize>,
    /// The time limit for the head of a request.
    pub head_time: Duration,
    /// How long a client may take no bytes of a response.
    pub stall_time: Duration,
    /// How long several Sources have for their first publication before the others are served.
    pub start_time: Duration,
    /// How often a directory is scanned whose changes are not heard of. If they are, how often what is heard of in no
    /// case is looked at.
    pub rescan: Duration,
    /// Publications that are made at a time, and a quarter more of those that take longer than `turn_time`.
    pub turns: usize,
    /// How long a publication may take before it goes on in a turn of those that take long.
    pub turn_time: Duration,
    /// Who may read a publication that stands alone.
    pub readers: Readers,
    /// Reverse proxies before the server. Their header `X-Forwarded-For` names the client.
    pub proxies: Arc<[Network]>,
    /// Resources that are withdrawn; none without a list.
    pub takedowns: Option<Takedowns>,
    /// What it counts.
    pub metrics: PublisherMetrics,
    /// The mail address of the administrator, shown by the OAI-PMH repository. None: `postmaster` at the base's host.
    pub contact: Option<String>,
    /// Turns of requests of OAI-PMH, of all repositories of the server. Clones share them.
    pub oai_turns: Arc<Semaphore>,
    /// The newest payloads of the topics of all publications. Clones share them.
    pub topics: Topics,
    /// How long a URL at the bucket is valid to which readers of large resources are led. None: the bytes are sent.
    pub redirect: Option<Duration>,
    /// The limits of a hub of its own; none without one.
    pub hub: Option<HubLimits>,
    /// Hubs of the publications that get no payload: they are told that the topic changed, and fetch it.
    pub pinged: Vec<Url>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_client: Some(64),
            head_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(60),
            start_time: Duration::from_secs(30),
            rescan: Duration::from_secs(60),
            turns: 16,
            turn_time: Duration::from_secs(30),
            readers: Readers::default(),
            proxies: Arc::default(),
            takedowns: None,
            metrics: PublisherMetrics::default(),
            contact: None,
            oai_turns: Arc::new(Semaphore::new(OAI_TURNS)),
            topics: Topics::default(),
            redirect: None,
            hub: None,
            pinged: Vec::new(),
        }
    }
}

impl Settings {
    /// The mail address of the administrator of what is published at a base.
    pub(crate) fn contact_at(&self, base: &Base) -> String {
        self.contact.clone().unwrap_or_else(|| postmaster(base))
    }
}

/// Whether it is a mail address, as OAI-PMH takes it.
pub fn is_mail(text: &str) -> bool {
    let ends = |host: &str| !host.starts_with('.') && !host.ends_with('.');
    let parts = text.split_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && ends(host))
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The address that each mail server must have (RFC 5321, section 4.5.1).
fn postmaster(base: &Base) -> String {
    let host = base.as_str().parse::<url::Url>().ok();
    let host = host.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    // OAI-PMH takes a host with a dot only.
    let end = if host.contains('.') { "" } else { ".localdomain" };
    format!("postmaster@{host}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_address_the_one_of_the_mail_server_is_shown() {
        let at = |base: &str| Settings::default().contact_at(&Base::new(base.parse().unwrap()).unwrap());
        assert_eq!(at("https://mirror.example/one/"), "postmaster@mirror.example");
        assert_eq!(at("http://localhost:8080/"), "postmaster@localhost.localdomain");
        let settings = Settings { contact: Some("a@b.org".to_owned()), ..Settings::default() };
        assert_eq!(settings.contact_at(&Base::new("http://e.org/".parse().unwrap()).unwrap()), "a@b.org");
    }
}
