//! Which addresses requests may reach, and the connections of each such set.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use model::Network;
use url::Url;

use crate::WebConfig;
use crate::address_guard::{Guard, Refused};
use crate::network::Underlay;
use crate::transport::{Carrier, Transport};

/// Sets of networks whose connections are kept before unused ones are closed.
const MOST_SETS: usize = 64;

/// The transport of requests, and the addresses it may reach. A request uses only connections to addresses
/// that it may reach: clients with other networks have connections of their own.
pub(crate) struct Access {
    pub(crate) carrier: Carrier,
    guard: Arc<Guard>,
}

/// Shared parts of all transports, and the transports in use.
pub(crate) struct Accesses {
    config: WebConfig,
    under: Under,
    usual: Arc<Access>,
    /// Transports that may reach more networks than the configuration allows.
    wider: Mutex<HashMap<BTreeSet<Network>, Arc<Access>>>,
}

/// The layer below the connections.
enum Under {
    Network(Underlay),
    Inside(Arc<dyn Transport>),
}

impl Access {
    /// Checks an address that is written in a URL. Names are checked when they are looked up.
    ///
    /// # Errors
    /// When it may not be reached.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Refused> {
        self.guard.check(url)
    }
}

impl Accesses {
    /// The network, or the transport in its place.
    ///
    /// # Errors
    /// When this machine has no root certificates.
    pub(crate) fn new(
        config: &WebConfig,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<Self, rustls::Error> {
        let under = match transport {
            // The network is not used, so the system's certificates are not read.
            Some(transport) => Under::Inside(transport),
            None => Under::Network(Underlay::new()?),
        };
        let usual = Arc::new(under.access(config, &BTreeSet::new()));
        Ok(Self { config: config.clone(), under, usual, wider: Mutex::default() })
    }

    /// The transport to the addresses that the configuration allows, and to these networks.
    pub(crate) fn reaching(&self, networks: &[Network]) -> Arc<Access> {
        let networks: BTreeSet<Network> = networks.iter().copied().collect();
        if networks.is_empty() {
            return Arc::clone(&self.usual);
        }
        let mut wider = self.wider.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(access) = wider.get(&networks) {
            return Arc::clone(access);
        }
        if wider.len() >= MOST_SETS {
            wider.retain(|_, access| Arc::strong_count(access) > 1);
        }
        let access = Arc::new(self.under.access(&self.config, &networks));
        wider.insert(networks, Arc::clone(&access));
        access
    }
}

impl Under {
    fn access(&self, config: &WebConfig, networks: &BTreeSet<Network>) -> Access {
        let allow = |policy: crate::AddressPolicy, network: &Network| policy.allow_network(*network);
        let guard = Arc::new(Guard::new(networks.iter().fold(config.addresses.clone(), allow)));
        let carrier = match self {
            Self::Network(underlay) => Carrier::Network(Box::new(underlay.networks(config, &guard))),
            Self::Inside(transport) => Carrier::Inside(Arc::clone(transport)),
        };
        Access { carrier, guard }
    }
}
