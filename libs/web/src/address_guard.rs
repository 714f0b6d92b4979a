//! Which addresses may be reached: whoever writes a list decides what is asked for, and must not reach with it what
//! only this machine can.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

pub use ipnet::IpNet as Network;
use url::{Host, Url};

mod class;
mod resolver;

pub use class::AddressClass;
use class::AddressClass::{Loopback, Private, Public, Shared};
pub(crate) use resolver::{Resolver, Unresolved};

/// Which addresses may be reached, checked after names are looked up, and on every redirect.
///
/// A public address always may. The default allows all others too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressPolicy {
    public_only: bool,
    allow: BTreeSet<AddressClass>,
    networks: BTreeSet<Network>,
    entries: BTreeSet<String>,
}

/// Why a host is not asked: all its addresses are of classes that are not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    address: IpAddr,
}

/// The policy, and what it has seen of the hosts it makes exceptions for.
#[derive(Debug)]
pub(crate) struct Guard {
    policy: AddressPolicy,
    /// The classes of the addresses that an entry's name first had.
    first_seen: Mutex<HashMap<String, BTreeSet<AddressClass>>>,
}

impl AddressPolicy {
    /// Every address may be reached.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Only public addresses may be reached.
    pub fn public_only() -> Self {
        Self { public_only: true, ..Self::default() }
    }

    /// Only public addresses may be reached, and the host of `entry`, which the operator gave, wherever it lies. See
    /// [`AddressPolicy::and_entry`].
    pub fn public_unless(entry: &Url) -> Self {
        Self::public_only().and_entry(entry)
    }

    /// Allows the host of another entry URL to lie where it lies, at any port. A host given as an address may be just
    /// that address, of whatever class. A name may lie at private, shared and loopback addresses, of the classes that it
    /// has at its first look-up: a name that is public at first cannot become private later.
    #[must_use]
    pub fn and_entry(mut self, entry: &Url) -> Self {
        self.entries.extend(entry.host_str().map(key));
        self
    }

    /// Allows a class of addresses to every host.
    #[must_use]
    pub fn allow(mut self, class: AddressClass) -> Self {
        self.allow.insert(class);
        self
    }

    /// Allows private and shared addresses, the ones inside of a site, to every host. Those of this machine
    /// ([`AddressClass::Loopback`]) and of its cloud stay refused.
    #[must_use]
    pub fn allow_private(self) -> Self {
        self.allow(Private).allow(Shared)
    }

    /// Allows the addresses of a network, or a single one, to every host, of whatever class they are.
    #[must_use]
    pub fn allow_network(mut self, network: Network) -> Self {
        self.networks.insert(network);
        self
    }

    fn allows(&self, address: IpAddr) -> bool {
        let class = AddressClass::of(address);
        // An IPv4 address in the form of IPv6 is connected to as that one.
        let canonical = address.to_canonical();
        !self.public_only
            || class == Public
            || self.allow.contains(&class)
            || self.networks.iter().any(|network| network.contains(&canonical))
    }
}

impl Guard {
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        Self { policy, first_seen: Mutex::default() }
    }

    /// Checks a host that is given as an address and so is never looked up. Names pass: they are checked when
    /// they are.
    ///
    /// # Errors
    /// [`Refused`] when the address may not be reached.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Refused> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        let is_entry = url.host_str().is_some_and(|host| self.policy.entries.contains(&key(host)));
        match is_entry || self.policy.allows(address) {
            true => Ok(()),
            false => Err(Refused { address }),
        }
    }

    /// The addresses of a name that may be reached.
    ///
    /// # Errors
    /// [`Refused`] when the name has addresses, but none of these.
    fn reachable(&self, name: &str, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
        if !self.policy.public_only {
            return Ok(addresses);
        }
        let own = self.own_classes(&key(name), &addresses);
        let (reachable, refused): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|address| {
            self.policy.allows(address.ip()) || own.contains(&AddressClass::of(address.ip()))
        });
        match refused.first() {
            Some(address) if reachable.is_empty() => Err(Refused { address: address.ip() }),
            _ => Ok(reachable),
        }
    }

    /// The classes that a name may have because the operator gave it; none for other names.
    fn own_classes(&self, name: &str, addresses: &[SocketAddr]) -> BTreeSet<AddressClass> {
        if addresses.is_empty() || !self.policy.entries.contains(name) {
            return BTreeSet::new();
        }
        let mut first_seen = self.first_seen.lock().unwrap_or_else(PoisonError::into_inner);
        let classes = first_seen.entry(name.to_owned()).or_insert_with(|| {
            let classes = addresses.iter().map(|address| AddressClass::of(address.ip()));
            // Nobody gives a name to a cloud's metadata or to a cable in good faith.
            classes.filter(|class| matches!(class, Private | Shared | Loopback)).collect()
        });
        classes.clone()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.address, AddressClass::of(self.address))
    }
}

impl std::error::Error for Refused {}

/// A host as it is compared: the dot that ends a full name is no part of it.
fn key(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
