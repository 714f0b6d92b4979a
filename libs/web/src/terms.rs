//! What holds for one Source, beside what holds for all.

use std::any::Any;
use std::fmt::Debug;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::HeaderValue;
use model::{Lane, Network};

use crate::access::{Access, Accesses};
use crate::credentials::Credentials;
use crate::{Client, Credential, ErrorKind, RobotsPolicy, WebConfig, WebError};

/// A place at an origin, given back when dropped.
pub type CommonPlace = Box<dyn Any + Send + Sync>;

/// Places at origins that several processes have in common, beside the budget that a client keeps by itself.
pub trait Places: Debug + Send + Sync {
    /// Waits for a place at `lane`. It is asked for when nothing else keeps a request from beginning, and held until the body
    /// of the answer has ended or broken, or the answer is dropped.
    fn place<'a>(&'a self, lane: &'a Lane) -> BoxFuture<'a, CommonPlace>;
}

/// What holds for the requests of one Source, where it is said; otherwise the client's configuration holds.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// A URL or address where the operator can be reached: [`WebConfig::contact`].
    pub contact: Option<String>,
    /// What is made of robots.txt.
    pub robots: Option<RobotsPolicy>,
    /// Requests to one origin in a second, unless the configuration allows fewer.
    pub requests_per_second: Option<NonZeroU32>,
    /// What is sent to the origins that let only those in whom they know, beside the configuration's.
    pub credentials: Vec<Credential>,
    /// Where each request gets a place from before it begins.
    pub places: Option<Arc<dyn Places>>,
    /// Networks that may be reached beside what the configuration allows, of whatever class but
    /// [`AddressClass::Metadata`](crate::AddressClass::Metadata).
    pub allow_networks: Vec<Network>,
    /// The origin of the Source's entry, where it is not the configuration's: [`WebConfig::entry`].
    pub entry: Option<Lane>,
    /// Requests that the Source may have open at one origin, of which the budget of a host is a multiple
    /// ([`WebConfig::host_share`]); the budget of the origin itself is the configuration's.
    pub per_origin: Option<usize>,
}

/// The terms, as requests need them.
pub(crate) struct Agreed {
    pub(crate) user_agent: HeaderValue,
    pub(crate) robots: RobotsPolicy,
    /// The time between the beginnings of two requests to an origin.
    pub(crate) pace: Duration,
    pub(crate) credentials: Credentials,
    pub(crate) places: Option<Arc<dyn Places>>,
    pub(crate) access: Arc<Access>,
    pub(crate) entry: Option<Lane>,
    /// Requests open at one host.
    pub(crate) per_host: usize,
}

impl Agreed {
    /// # Errors
    /// What is wrong with the terms.
    pub(crate) fn new(config: &WebConfig, accesses: &Accesses, terms: Terms) -> Result<Self, String> {
        let contact = terms.contact.or_else(|| config.contact.clone());
        let agent = WebConfig { contact, ..config.clone() }.user_agent_header();
        let mut credentials = config.credentials.clone();
        credentials.extend(terms.credentials);
        Ok(Self {
            user_agent: agent
                .parse()
                .map_err(|_| format!("{agent:?} cannot stand in a User-Agent header"))?,
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
    /// Whether an origin is of another site than the entry, so that the entry's invitation does not extend to it.
    pub(crate) fn is_foreign(&self, lane: &Lane) -> bool {
        self.entry.as_ref().is_some_and(|entry| !model::same_site_hosts(entry.host(), lane.host()))
    }
}

impl Client {
    /// A client for the requests of one Source, which shares everything else with this one: connections (unless it may reach other networks), the budgets of
    /// origins and their rests, counts, and what is known of robots.txt.
    ///
    /// # Errors
    /// [`ErrorKind::Builder`] when a contact fits no header, or two credentials set the same header.
    pub fn on(&self, terms: Terms) -> Result<Self, WebError> {
        let agreed = Agreed::new(self.config(), &self.0.accesses, terms);
        let agreed = agreed.map_err(|why| WebError::new(ErrorKind::Builder).detail(why))?;
        Ok(Self(Arc::clone(&self.0), Arc::new(agreed)))
    }
}
