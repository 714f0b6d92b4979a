//! The client address of a request.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use model::Network;
use serving::client::address;

/// The address of a client. IPv6 addresses count by their /64 network, because one client controls all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientAddress(IpAddr);

impl ClientAddress {
    /// An address that is unknown, or not counted by itself.
    pub(crate) const UNKNOWN: Self = Self(IpAddr::V6(Ipv6Addr::UNSPECIFIED));

    /// The client behind a connection. `X-Forwarded-For` counts only if the peer is one of `proxies`.
    pub(crate) fn of(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> Self {
        Self(narrowed(address(peer, headers, proxies)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(Self::UNKNOWN))
    }
}

fn narrowed(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str) -> ClientAddress {
        ClientAddress::of(peer.parse().unwrap(), &HeaderMap::new(), &[])
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_client() {
        assert_eq!(client("2001:db8:1:2::3"), client("2001:db8:1:2:ffff::4"));
        assert_ne!(client("2001:db8:1:2::3"), client("2001:db8:1:3::3"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }
}
