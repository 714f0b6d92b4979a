//! Limits of the server.

use std::time::Duration;

use publish::Base;

use crate::access::Tokens;
use crate::hub_limits::HubLimits;
use crate::metrics::PublisherMetrics;
use crate::takedowns::Takedowns;

/// Limits of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most connections at a time.
    pub connections: usize,
    /// The time limit for the head of a request.
    pub head_time: Duration,
    /// How long a client may take no bytes of a response.
    pub stall_time: Duration,
    /// How long several Sources have for their first publication before the others are served.
    pub start_time: Duration,
    /// How often a directory is scanned for changes.
    pub rescan: Duration,
    /// The tokens of readers; none if everybody may read.
    pub tokens: Option<Tokens>,
    /// Resources that are withdrawn; none without a list.
    pub takedowns: Option<Takedowns>,
    /// What it counts.
    pub metrics: PublisherMetrics,
    /// The mail address of the administrator, shown by the OAI-PMH repository. None: `postmaster` at the base's host.
    pub contact: Option<String>,
    /// The limits of a hub of its own; none without one.
    pub hub: Option<HubLimits>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 512,
            head_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(60),
            start_time: Duration::from_secs(30),
            rescan: Duration::from_secs(60),
            tokens: None,
            takedowns: None,
            metrics: PublisherMetrics::default(),
            contact: None,
            hub: None,
        }
    }
}

impl Settings {
    /// The mail address of the administrator of what is published at a base.
    pub(crate) fn contact_at(&self, base: &Base) -> String {
        self.contact.clone().unwrap_or_else(|| postmaster(base))
    }
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
