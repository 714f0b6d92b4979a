//! Settings for one Source, beside those for all.

use std::any::Any;
use std::fmt::Debug;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::HeaderValue;
use model::{Network, Origin};

use crate::access::{Access, Accesses};
use crate::credentials::Credentials;
use crate::{Credential, RobotsPolicy, WebConfig};

/// A permit of an origin, returned when dropped.
pub type SharedPermit = Box<dyn Any + Send + Sync>;

/// Permits of origins that several processes share, beside the budget inside a client.
pub trait PermitProvider: Debug + Send + Sync {
    /// Waits for a permit of `origin`. It is requested last, when nothing else blocks the request. It is held
    /// until the body has ended or broken off, or the response is dropped.
    fn acquire_permit<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, SharedPermit>;
}

/// Settings for the requests of one Source; a setting left out is the client's.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// A URL or address of the operator: [`WebConfig::contact`].
    pub contact: Option<String>,
    /// How robots.txt is obeyed.
    pub robots: Option<RobotsPolicy>,
    /// Requests to one origin per second, unless the configuration allows fewer.
    pub requests_per_second: Option<NonZeroU32>,
    /// Credentials of origins that require them, beside the configuration's.
    pub credentials: Vec<Credential>,
    /// The provider of each request's permit.
    pub places: Option<Arc<dyn PermitProvider>>,
    /// Networks that may be reached beside what the configuration allows, of whatever class but
    /// [`AddressClass::Metadata`](crate::AddressClass::Metadata).
    pub allow_networks: Vec<Network>,
    /// The origin of the Source's entry, where it is not the configuration's: [`WebConfig::entry`].
    pub entry: Option<Origin>,
    /// Concurrent requests of the Source to one origin. The budget of a host is a multiple of it
    /// ([`WebConfig::host_share`]); the budget of the origin itself is the configuration's.
    pub per_origin: Option<usize>,
}

/// The settings, prepared for requests.
pub(crate) struct Agreed {
    pub(crate) user_agent: HeaderValue,
    pub(crate) robots: RobotsPolicy,
    /// The interval between the starts of two requests to an origin.
    pub(crate) pace: Duration,
    /// The mail address of the operator, for a `From` header (RFC 9110, section 10.1.2).
    pub(crate) from: Option<HeaderValue>,
    pub(crate) credentials: Credentials,
    pub(crate) places: Option<Arc<dyn PermitProvider>>,
    pub(crate) access: Arc<Access>,
    pub(crate) entry: Option<Origin>,
    /// Concurrent requests to one host.
    pub(crate) per_host: usize,
}

impl Agreed {
    /// # Errors
    /// What is wrong with the terms.
    pub(crate) fn new(config: &WebConfig, accesses: &Accesses, terms: Terms) -> Result<Self, String> {
        let contact = terms.contact.or_else(|| config.contact.clone());
        let from = contact.as_deref().and_then(mail_address).and_then(|address| address.parse().ok());
        let agent = WebConfig { contact, ..config.clone() }.user_agent_header();
        let mut credentials = config.credentials.clone();
        credentials.extend(terms.credentials);
        Ok(Self {
            user_agent: agent
                .parse()
                .map_err(|_| format!("{agent:?} cannot stand in a User-Agent header"))?,
            from,
            robots: terms.robots.unwrap_or_else(|| config.robots.clone()),
            pace: terms.requests_per_second.map_or(Duration::ZERO, |n| Duration::from_secs(1) / n.get()),
            credentials: Credentials::new(credentials)?,
            places: terms.places,
            entry: terms.entry.or_else(|| config.entry.clone()),
            per_host: terms.per_origin.unwrap_or(config.per_origin).saturating_mul(config.host_share),
            access: accesses.reaching(&terms.allow_networks),
        })
    }
}

impl Agreed {
    /// Whether an origin belongs to another site than the entry, so that the entry's invitation does not
    /// extend to it.
    pub(crate) fn is_foreign(&self, origin: &Origin) -> bool {
        self.entry.as_ref().is_some_and(|entry| !model::same_site_hosts(entry.host(), origin.host()))
    }
}

/// The mail address in a contact; none if that is a URL.
fn mail_address(contact: &str) -> Option<&str> {
    let address = contact.trim().trim_start_matches("mailto:");
    let (name, host) = address.split_once('@')?;
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['/', ':', ' ', '@', '<', '>', ',']);
    (is_plain(name) && is_plain(host)).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_that_is_a_mail_address_is_one() {
        for (contact, address) in [
            ("ops@example.org", Some("ops@example.org")),
            ("mailto:ops@example.org", Some("ops@example.org")),
            ("https://example.org/about", None),
            ("https://ops@example.org/", None),
            ("ops", None),
        ] {
            assert_eq!(mail_address(contact), address, "{contact}");
        }
    }
}
