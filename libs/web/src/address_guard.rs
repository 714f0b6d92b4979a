//! Which addresses may be reached. The author of a list decides which URLs are requested, and must not reach
//! hosts that only this machine can reach.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use model::Network;
use url::{Host, Url};

mod cached_names;
mod class;
mod resolver;

pub(crate) use cached_names::CachedNames;
pub use class::AddressClass;
use class::AddressClass::{Loopback, Metadata, Private, Public, Shared};
pub(crate) use resolver::{Names, Resolver, SystemNames, Unresolved};

/// The default ports of http and https. An entry at one of them may be requested at the other, where it
/// redirects to itself.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Which addresses may be reached. Checked after each look-up of a name, and on every redirect.
///
/// Public addresses are always allowed. The default allows all others too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressPolicy {
    public_only: bool,
    allow: BTreeSet<AddressClass>,
    networks: BTreeSet<Network>,
    entries: BTreeSet<(String, u16)>,
}

/// A refused host: none of its addresses may be reached. One of them is reported for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    address: IpAddr,
    why: Why,
}

/// Why an address may not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It is of a class that is not allowed.
    Class,
    /// It belongs to the entry, but the port is another one.
    Port,
    /// The entry's name has it now, but had others when it was first looked up.
    Moved,
}

/// The policy, and the first addresses of the hosts that it makes exceptions for.
#[derive(Debug)]
pub(crate) struct Guard {
    policy: AddressPolicy,
    /// The addresses that an entry's name keeps, since they were its first; none where it has no exemption.
    kept: Mutex<HashMap<String, Option<BTreeSet<IpAddr>>>>,
}

impl AddressPolicy {
    /// Allows every address.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Allows public addresses only.
    pub fn public_only() -> Self {
        Self { public_only: true, ..Self::default() }
    }

    /// Allows public addresses, and the host of `entry`, which the operator gave, at whatever address. See
    /// [`AddressPolicy::and_entry`].
    pub fn public_unless(entry: &Url) -> Self {
        Self::public_only().and_entry(entry)
    }

    /// Allows the host of another entry URL at its own addresses. A host given as an address may have any
    /// class but [`AddressClass::Metadata`], at any port.
    ///
    /// A name may have private, shared and loopback addresses if its first look-up returns nothing else. It
    /// then keeps these addresses, at the port of the entry: no later look-up leads anywhere else. (80 and
    /// 443 count as one port.) A name with a public address among its first ones is treated like any other
    /// name.
    #[must_use]
    pub fn and_entry(mut self, entry: &Url) -> Self {
        self.entries.extend(entry.host_str().map(key).zip(entry.port_or_known_default()));
        self
    }

    /// Allows a class of addresses to every host.
    #[must_use]
    pub fn allow(mut self, class: AddressClass) -> Self {
        self.allow.insert(class);
        self
    }

    /// Allows private and shared addresses, those inside of a site, to every host. Addresses of this machine
    /// ([`AddressClass::Loopback`]) and of its cloud stay refused.
    #[must_use]
    pub fn allow_private(self) -> Self {
        self.allow(Private).allow(Shared)
    }

    /// Allows the addresses of a network, or a single one, to every host, of whatever class they are. Those of
    /// [`AddressClass::Metadata`] stay refused.
    #[must_use]
    pub fn allow_network(mut self, network: Network) -> Self {
        self.networks.insert(network);
        self
    }

    fn allows(&self, address: IpAddr) -> bool {
        let class = AddressClass::of(address);
        let is_named =
            || self.allow.contains(&class) || self.networks.iter().any(|network| network.contains(address));
        !self.public_only || class == Public || (class != Metadata && is_named())
    }

    /// Whether the operator gave an entry at this host.
    fn has_entry_at(&self, host: &str) -> bool {
        self.entries.iter().any(|(entry, _)| entry == host)
    }

    /// Whether the operator gave an entry at this host and port.
    fn is_entry(&self, host: &str, port: u16) -> bool {
        let is_usual = |port| USUAL_PORTS.contains(&port);
        let mut ports = self.entries.iter().filter(|(entry, _)| entry == host).map(|(_, port)| *port);
        ports.any(|entry| entry == port || (is_usual(entry) && is_usual(port)))
    }
}

impl Guard {
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        Self { policy, kept: Mutex::default() }
    }

    /// Checks a host that is given as an address and so is never looked up. Names pass: they are checked
    /// after the look-up.
    ///
    /// # Errors
    /// [`Refused`] when the address may not be reached.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Refused> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        let is_entry = || url.host_str().is_some_and(|host| self.policy.has_entry_at(&key(host)));
        if self.policy.allows(address) || (AddressClass::of(address) != Metadata && is_entry()) {
            return Ok(());
        }
        Err(Refused { address, why: Why::Class })
    }

    /// The addresses of a name that may be reached at a port.
    ///
    /// # Errors
    /// [`Refused`] when the name has addresses, but none of them is allowed.
    fn reachable(
        &self,
        name: &str,
        port: u16,
        addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Refused> {
        if !self.policy.public_only {
            return Ok(addresses);
        }
        let name = key(name);
        let kept = self.kept_by(&name, &addresses);
        let is_entry = self.policy.is_entry(&name, port);
        let why = |address: &SocketAddr| match &kept {
            Some(kept) if !kept.contains(&address.ip()) => Some(Why::Moved),
            Some(_) if is_entry => None,
            _ if self.policy.allows(address.ip()) => None,
            Some(_) => Some(Why::Port),
            None => Some(Why::Class),
        };
        let first = addresses.first().and_then(|address| Some((address.ip(), why(address)?)));
        let reachable: Vec<_> = addresses.into_iter().filter(|address| why(address).is_none()).collect();
        match first {
            Some((address, why)) if reachable.is_empty() => Err(Refused { address, why }),
            _ => Ok(reachable),
        }
    }

    /// The addresses that a name keeps because the operator gave it and it first had only addresses that need
    /// permission. None for all other names.
    fn kept_by(&self, name: &str, addresses: &[SocketAddr]) -> Option<BTreeSet<IpAddr>> {
        if addresses.is_empty() || !self.policy.has_entry_at(name) {
            return None;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let first = kept.entry(name.to_owned()).or_insert_with(|| {
            let first: BTreeSet<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
            // No legitimate name points to a link-local address, such as a cloud's metadata service.
            let is_inside =
                |address: &IpAddr| matches!(AddressClass::of(*address), Private | Shared | Loopback);
            let needs_leave = first.iter().any(|address| !self.policy.allows(*address));
            (needs_leave && first.iter().all(is_inside)).then_some(first)
        });
        first.clone()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = AddressClass::of(self.address);
        write!(f, "{} is {class}", self.address)?;
        match self.why {
            Why::Class if class == Metadata => f.write_str(", which no option allows"),
            Why::Class => Ok(()),
            Why::Port => f.write_str(", which only the port of the entry URL may be asked at"),
            Why::Moved => f.write_str(", and the name of the entry URL had other addresses before"),
        }
    }
}

impl std::error::Error for Refused {}

/// A host name for comparison: the dot that ends a full name is no part of it.
fn key(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
